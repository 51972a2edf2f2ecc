//! Forks while spans are open, as servers do that start their workers so.
//!
//! For tests of `ccscope run --regions`.

use std::hint::black_box;

use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

unsafe extern "C" {
    safe fn fork() -> i32;
    fn wait(status: *mut i32) -> i32;
}

fn work() {
    for _ in 0..10 {
        info_span!("work").in_scope(|| black_box(vec![1_u8; 1000]));
    }
}

fn main() {
    tracing_subscriber::registry()
        .with(ccscope::Regions::new())
        .init();
    let _region = ccscope::region!("main");
    let held: Vec<_> = (0..10).map(|_| info_span!("held")).collect();
    let entered = info_span!("entered").entered();
    let child = fork();
    if child == 0 {
        work();
        for span in held {
            span.in_scope(|| black_box(vec![1_u8; 100]));
        }
        drop(entered);
        work();
        return;
    }
    let mut status = -1;
    // SAFETY: the kernel writes one number.
    unsafe { wait(&raw mut status) };
    drop((entered, held));
    println!("child status {status:x}");
}
