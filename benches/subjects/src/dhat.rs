//! `subjects` under dhat-rs.

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() -> std::process::ExitCode {
    let _profiler = dhat::Profiler::builder().file_name("/dev/null").build();
    subjects::main()
}
