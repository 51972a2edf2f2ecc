//! The memory of this process, and the load of the machine.

use std::fs::read_to_string;
use std::hint::black_box;

use ccmalloc::advise_huge_pages;

/// Makes the hypervisor, if there is one, hand out memory, in huge pages. Where it takes idle
/// memory back, a page costs twenty times as much as one that the kernel clears, and the first of
/// two structures to touch it would pay for both.
pub fn warm_memory(bytes: usize) {
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    advise_huge_pages(memory.as_ptr(), bytes);
    memory.resize(bytes, 1);
    drop(black_box(memory));
}

/// Bytes that the system's malloc has given out, its headers and rounding included.
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

/// Seconds of processor time that children which have ended took, the kernel's part included.
pub fn children_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the structure that it is given; zeros are valid where it fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

pub fn load_average() -> Option<[f64; 3]> {
    let text = read_to_string("/proc/loadavg").ok()?;
    let mut loads = text.split_whitespace().map(|load| load.parse().ok());
    Some([loads.next()??, loads.next()??, loads.next()??])
}

pub fn system_name() -> String {
    match read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => format!("Linux {}", release.trim()),
        Err(_) => std::env::consts::OS.to_owned(),
    }
}

/// The time of all processors since the system started, in the kernel's ticks.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorTime {
    pub total: u64,
    /// What any process or the kernel used.
    pub busy: u64,
    /// What the hypervisor gave to other guests.
    pub stolen: u64,
    /// What this process and those of its children that have ended used.
    pub own: u64,
}

impl ProcessorTime {
    pub fn now() -> Option<Self> {
        // Ticks: user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is user time.
        let text = read_to_string("/proc/stat").ok()?;
        let all = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = all.split_whitespace().map_while(|tick| tick.parse().ok());
        let ticks: Vec<u64> = ticks.collect();
        let &[user, nice, system, idle, wait, irq, softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        // The name in brackets may hold anything. The 12th to 15th field after it are user and
        // system time, own and of ended children.
        let text = read_to_string("/proc/self/stat").ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        let own = fields.split_whitespace().skip(11).take(4);
        let own: Option<u64> = own.map(|tick| tick.parse::<u64>().ok()).sum();
        let total = busy + idle + wait + stolen;
        Some(ProcessorTime {
            total,
            busy,
            stolen,
            own: own?,
        })
    }
}

/// Bytes of memory that this process has now; its peak, where the system does not tell.
pub fn resident_bytes() -> u64 {
    status("self", "VmRSS:").unwrap_or_else(peak_resident_bytes)
}

/// The most memory that this process ever had, in bytes.
pub fn peak_resident_bytes() -> u64 {
    // Not `getrusage` on Linux, where a child begins with the peak of its parent.
    status("self", "VmHWM:").unwrap_or_else(|| {
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
    })
}

/// That of another process, while it runs.
pub fn peak_of(process: u32) -> Option<u64> {
    status(&process.to_string(), "VmHWM:")
}

fn status(process: &str, name: &str) -> Option<u64> {
    let text = read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}
