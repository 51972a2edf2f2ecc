//! How much memory this process has, and memory that it can have at once.

use std::hint::black_box;

pub use imp::{peak_resident_bytes, resident_bytes};

/// Has the hypervisor, if there is one, hand out memory: where it takes idle memory back, a page that it has to give anew costs twenty times as much as one that
/// the kernel clears, and the first of two structures to touch it would pay for both.
pub fn warm_memory(bytes: usize) {
    drop(black_box(vec![1_u8; bytes]));
}

#[cfg(target_os = "linux")]
mod imp {
    /// Bytes of memory that this process has now.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn resident_bytes() -> u64 {
        status("VmRSS:")
    }

    /// The most that it ever had.
    ///
    /// Not `getrusage`: its peak is kept over `exec`, so a child would begin with that of its parent.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn peak_resident_bytes() -> u64 {
        status("VmHWM:")
    }

    /// A figure of `/proc/self/status`, which gives KiB.
    fn status(name: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status");
        let kib = status.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        kib.expect("Linux tells every process its size") << 10
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    /// Bytes of memory that this process has now: as far as is known here, its peak.
    ///
    /// # Panics
    /// When the system does not tell.
    pub fn resident_bytes() -> u64 {
        peak_resident_bytes()
    }

    /// The most that it ever had.
    ///
    /// # Panics
    /// When the system does not tell.
    pub fn peak_resident_bytes() -> u64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: getrusage fills the structure that it is given.
        let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        assert_eq!(status, 0, "a process may ask for its own usage");
        // SAFETY: it reported success, so it filled the structure.
        let peak = unsafe { usage.assume_init() }.ru_maxrss;
        let unit = if cfg!(target_vendor = "apple") {
            1
        } else {
            1024
        };
        u64::try_from(peak).expect("sizes are not negative") * unit
    }
}
