//! `subjects NAME THREADS ROUNDS`: see the library.

fn main() -> std::process::ExitCode {
    subjects::main()
}
