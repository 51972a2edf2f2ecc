//! Panics and goes on, with a message to which the standard library adds a backtrace.

fn main() {
    let idle: Vec<u8> = Vec::with_capacity(5_000_000);
    let caught = std::panic::catch_unwind(|| panic!("on purpose"));
    println!("{} {}", caught.is_err(), std::hint::black_box(&idle).len());
}
