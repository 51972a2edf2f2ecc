//! How much memory this process has, and memory that it can have at once; how busy the machine is,
//! and with whom.

use std::hint::black_box;

use ccmalloc::advise_huge_pages;

pub use imp::{load_average, peak_resident_bytes, resident_bytes, system_name};

/// Has the hypervisor, if there is one, hand out memory: where it takes idle memory back, a page
/// that it has to give anew costs twenty times as much as one that the kernel clears, and the first
/// of two structures to touch it would pay for both. In huge pages where there are any, as what
/// asks for those would otherwise get other memory than this.
pub fn warm_memory(bytes: usize) {
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    advise_huge_pages(memory.as_ptr(), bytes);
    memory.resize(bytes, 1);
    drop(black_box(memory));
}

/// Bytes that the system's malloc has given out, its headers and rounding included; `None` where it
/// does not tell.
pub fn heap_bytes() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it only counts.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// The time of all processors since the system started, in the kernel's ticks.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorTime {
    /// All of it, idle time included.
    pub total: u64,
    /// What any process or the kernel used.
    pub busy: u64,
    /// What the hypervisor gave to other guests.
    pub stolen: u64,
    /// What this process and those of its children that have ended used.
    pub own: u64,
}

impl ProcessorTime {
    /// Until now; `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        imp::processor_time()
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use super::ProcessorTime;
    use std::fs::read_to_string;

    /// Load averages over 1, 5 and 15 minutes; `None` where the system does not tell.
    pub fn load_average() -> Option<[f64; 3]> {
        let text = read_to_string("/proc/loadavg").ok()?;
        let mut loads = text.split_whitespace().map(|load| load.parse().ok());
        Some([loads.next()??, loads.next()??, loads.next()??])
    }

    /// The operating system's name and version.
    pub fn system_name() -> String {
        let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("Linux {}", release.trim()).trim_end().to_owned()
    }

    /// `/proc/stat` begins with a line of ticks: user, nice, system, idle, iowait, irq, softirq,
    /// steal. Guests' time is part of user time.
    pub(super) fn processor_time() -> Option<ProcessorTime> {
        let text = read_to_string("/proc/stat").ok()?;
        let all = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = all
            .split_whitespace()
            .map_while(|tick| tick.parse().ok())
            .collect();
        let &[user, nice, system, idle, wait, irq, softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(ProcessorTime {
            total: busy + idle + wait + stolen,
            busy,
            stolen,
            own: own_ticks()?,
        })
    }

    /// `/proc/self/stat`: after the name in brackets, which may hold anything, the 12th to 15th
    /// field are user and system time, own and of ended children.
    fn own_ticks() -> Option<u64> {
        let text = read_to_string("/proc/self/stat").ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(4);
        ticks.map(|tick| tick.parse::<u64>().ok()).sum()
    }

    /// Bytes of memory that this process has now.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn resident_bytes() -> u64 {
        status("VmRSS:")
    }

    /// The most that it ever had.
    ///
    /// Not `getrusage`: its peak is kept over `exec`, so a child would begin with that of its
    /// parent.
    ///
    /// # Panics
    /// When the kernel does not tell.
    pub fn peak_resident_bytes() -> u64 {
        status("VmHWM:")
    }

    /// A figure of `/proc/self/status`, which gives KiB.
    fn status(name: &str) -> u64 {
        let status = read_to_string("/proc/self/status");
        let kib = status.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        kib.expect("Linux tells every process its size") << 10
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::ProcessorTime;

    /// Load averages over 1, 5 and 15 minutes; `None` where the system does not tell.
    pub fn load_average() -> Option<[f64; 3]> {
        None
    }

    /// The operating system's name and version, as far as it is known here.
    pub fn system_name() -> String {
        std::env::consts::OS.to_owned()
    }

    pub(super) fn processor_time() -> Option<ProcessorTime> {
        None
    }

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
