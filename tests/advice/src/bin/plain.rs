//! `plain NAME before|KIND [SCALE]`: see the library.

fn main() -> std::process::ExitCode {
    advice_programs::main()
}
