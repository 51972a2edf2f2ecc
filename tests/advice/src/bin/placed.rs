//! `placed NAME before|KIND [SCALE]`: see the library.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

fn main() -> std::process::ExitCode {
    advice_programs::main()
}
