//! Misuse that the allocator can see: one line on stderr and an abort, in a child process.

use std::alloc::Layout;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::ptr::NonNull;

use ccmalloc::{cc_alloc, cc_dealloc};

const WHAT: &str = "CCMALLOC_TEST_MISUSE";

/// Not a test of its own: does what [`WHAT`] names, in the child.
#[test]
fn child() {
    let Ok(what) = std::env::var(WHAT) else {
        return;
    };
    let layout = Layout::new::<[u64; 3]>();
    let plain = cc_alloc(layout, None).unwrap();
    let hinted = cc_alloc(layout, Some(NonNull::dangling())).unwrap();
    let large = Layout::from_size_align(3 << 20, 8).unwrap();
    let span = Layout::from_size_align(100_000, 8).unwrap();
    let inside = |object: NonNull<u8>, bytes: usize| {
        NonNull::new(object.as_ptr().wrapping_add(bytes)).unwrap()
    };
    // SAFETY: none: each of these breaks the contract, and the process is expected to abort. No memory is accessed through
    // the pointers.
    unsafe {
        match what.as_str() {
            "double free" => {
                cc_dealloc(plain, layout);
                cc_dealloc(plain, layout);
            }
            "double free of a hinted object" => {
                cc_dealloc(hinted, layout);
                cc_dealloc(hinted, layout);
            }
            "double free by another thread" => {
                let address = plain.addr();
                let free = move || cc_dealloc(NonNull::without_provenance(address), layout);
                std::thread::spawn(free).join().unwrap();
                std::thread::spawn(free).join().unwrap();
            }
            "interior pointer" => cc_dealloc(inside(plain, 8), layout),
            "misaligned hinted pointer" => cc_dealloc(inside(hinted, 4), layout),
            "size too large" => cc_dealloc(hinted, Layout::new::<[u64; 8]>()),
            "double free of a mapping" => {
                let object = cc_alloc(large, None).unwrap();
                cc_dealloc(object, large);
                cc_dealloc(object, large);
            }
            "inside a span" => cc_dealloc(inside(cc_alloc(span, None).unwrap(), 64), span),
            "foreign" => {
                let local = [0u8; 64];
                cc_dealloc(NonNull::from(&local).cast(), large);
            }
            _ => unreachable!("{what}"),
        }
    }
    println!("survived {what}");
}

#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn misuse_aborts_with_one_line() {
    let cases = [
        "double free",
        "double free of a hinted object",
        "double free by another thread",
        "interior pointer",
        "misaligned hinted pointer",
        "size too large",
        "double free of a mapping",
        "inside a span",
        "foreign",
    ];
    for what in cases {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "misuse::child",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(WHAT, what)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "{what}: {stderr}");
        let lines: Vec<_> = stderr
            .lines()
            .filter(|line| line.starts_with("ccmalloc: "))
            .collect();
        assert_eq!(lines.len(), 1, "{what}: {stderr}");
        assert!(lines[0].contains(" 0x"), "{what}: {stderr}");
    }
}
