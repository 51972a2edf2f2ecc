//! What a profiler costs before and after all work.

fn main() {
    println!("hello world");
}
