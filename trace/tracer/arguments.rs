//! What the arguments of system calls point to.

use super::numbers as nr;
use super::sys::PAGE;
use super::{wire, zones};

/// How many bytes of memory a call reads or writes.
#[derive(Clone, Copy)]
pub(crate) enum Len {
    /// As this argument says, times this.
    Argument(usize, u64),
    /// Words for so many bits as this argument says.
    Bits(usize),
    /// As the result says, times this.
    Result(u64),
    /// So many.
    Fixed(u64),
    /// To the first 0.
    Text,
}

impl Len {
    /// How many bytes it may be at most, and how many it is once the result is known.
    pub(crate) fn bytes(self, arguments: &[u64; 6], argument: usize, result: Option<u64>) -> u64 {
        match (self, result) {
            (Len::Argument(of, times), _) => (arguments[of] & COUNT).saturating_mul(times),
            (Len::Bits(of), _) => (arguments[of] & 0xffff_ffff).div_ceil(64) * 8,
            (Len::Fixed(bytes), _) => bytes,
            (Len::Text, _) => text_len(arguments[argument]),
            (Len::Result(times), Some(result)) => result.saturating_mul(times),
            // How much there is room for always follows.
            (Len::Result(times), None) => arguments[argument + 1].saturating_mul(times),
        }
    }
}
/// What no length exceeds: half of the address space.
const COUNT: u64 = (1 << 47) - 1;

/// Which argument of a call points to what; `W` is written by the kernel, `G` read.
pub(crate) const BLOCKS: &[(u64, usize, u8, Len)] = &[
    (nr::READ, 1, wire::FILL, Len::Result(1)),
    (nr::WRITE, 1, wire::FETCH, Len::Argument(2, 1)),
    (nr::OPEN, 0, wire::FETCH, Len::Text),
    (nr::STAT, 0, wire::FETCH, Len::Text),
    (nr::STAT, 1, wire::FILL, Len::Fixed(144)),
    (nr::FSTAT, 1, wire::FILL, Len::Fixed(144)),
    (nr::LSTAT, 0, wire::FETCH, Len::Text),
    (nr::LSTAT, 1, wire::FILL, Len::Fixed(144)),
    (nr::POLL, 0, wire::FILL, Len::Argument(1, 8)),
    (nr::PREAD64, 1, wire::FILL, Len::Result(1)),
    (nr::PWRITE64, 1, wire::FETCH, Len::Argument(2, 1)),
    (nr::ACCESS, 0, wire::FETCH, Len::Text),
    (nr::PIPE, 0, wire::FILL, Len::Fixed(8)),
    (nr::SELECT, 1, wire::FILL, Len::Bits(0)),
    (nr::SELECT, 2, wire::FILL, Len::Bits(0)),
    (nr::SELECT, 3, wire::FILL, Len::Bits(0)),
    (nr::NANOSLEEP, 0, wire::FETCH, Len::Fixed(16)),
    (nr::CONNECT, 1, wire::FETCH, Len::Argument(2, 1)),
    (nr::SENDTO, 1, wire::FETCH, Len::Argument(2, 1)),
    (nr::SENDTO, 4, wire::FETCH, Len::Argument(5, 1)),
    (nr::RECVFROM, 1, wire::FILL, Len::Result(1)),
    (nr::BIND, 1, wire::FETCH, Len::Argument(2, 1)),
    (nr::SOCKETPAIR, 3, wire::FILL, Len::Fixed(8)),
    (nr::SETSOCKOPT, 3, wire::FETCH, Len::Argument(4, 1)),
    (nr::EXECVE, 0, wire::FETCH, Len::Text),
    (nr::WAIT4, 1, wire::FILL, Len::Fixed(4)),
    (nr::UNAME, 0, wire::FILL, Len::Fixed(390)),
    (nr::GETDENTS, 1, wire::FILL, Len::Result(1)),
    (nr::GETCWD, 0, wire::FILL, Len::Result(1)),
    (nr::CHDIR, 0, wire::FETCH, Len::Text),
    (nr::RENAME, 0, wire::FETCH, Len::Text),
    (nr::RENAME, 1, wire::FETCH, Len::Text),
    (nr::MKDIR, 0, wire::FETCH, Len::Text),
    (nr::UNLINK, 0, wire::FETCH, Len::Text),
    (nr::READLINK, 0, wire::FETCH, Len::Text),
    (nr::READLINK, 1, wire::FILL, Len::Result(1)),
    (nr::GETTIMEOFDAY, 0, wire::FILL, Len::Fixed(16)),
    (nr::GETRLIMIT, 1, wire::FILL, Len::Fixed(16)),
    (nr::GETRUSAGE, 1, wire::FILL, Len::Fixed(144)),
    (nr::SYSINFO, 0, wire::FILL, Len::Fixed(112)),
    (nr::TIMES, 0, wire::FILL, Len::Fixed(32)),
    (nr::STATFS, 0, wire::FETCH, Len::Text),
    (nr::STATFS, 1, wire::FILL, Len::Fixed(120)),
    (nr::FSTATFS, 1, wire::FILL, Len::Fixed(120)),
    (nr::FUTEX, 0, wire::FETCH, Len::Fixed(4)),
    (nr::SCHED_GETAFFINITY, 2, wire::FILL, Len::Result(1)),
    (nr::GETDENTS64, 1, wire::FILL, Len::Result(1)),
    (nr::CLOCK_GETTIME, 1, wire::FILL, Len::Fixed(16)),
    (nr::CLOCK_GETRES, 1, wire::FILL, Len::Fixed(16)),
    (nr::CLOCK_NANOSLEEP, 2, wire::FETCH, Len::Fixed(16)),
    (nr::EPOLL_WAIT, 1, wire::FILL, Len::Result(12)),
    (nr::EPOLL_CTL, 3, wire::FETCH, Len::Fixed(12)),
    (nr::OPENAT, 1, wire::FETCH, Len::Text),
    (nr::NEWFSTATAT, 1, wire::FETCH, Len::Text),
    (nr::NEWFSTATAT, 2, wire::FILL, Len::Fixed(144)),
    (nr::UNLINKAT, 1, wire::FETCH, Len::Text),
    (nr::READLINKAT, 1, wire::FETCH, Len::Text),
    (nr::READLINKAT, 2, wire::FILL, Len::Result(1)),
    (nr::PSELECT6, 1, wire::FILL, Len::Bits(0)),
    (nr::PSELECT6, 2, wire::FILL, Len::Bits(0)),
    (nr::PSELECT6, 3, wire::FILL, Len::Bits(0)),
    (nr::PPOLL, 0, wire::FILL, Len::Argument(1, 8)),
    (nr::EPOLL_PWAIT, 1, wire::FILL, Len::Result(12)),
    (nr::PIPE2, 0, wire::FILL, Len::Fixed(8)),
    (nr::PRLIMIT64, 2, wire::FETCH, Len::Fixed(16)),
    (nr::PRLIMIT64, 3, wire::FILL, Len::Fixed(16)),
    (nr::GETRANDOM, 0, wire::FILL, Len::Result(1)),
    (nr::STATX, 1, wire::FETCH, Len::Text),
    (nr::STATX, 4, wire::FILL, Len::Fixed(256)),
    (nr::FACCESSAT2, 1, wire::FETCH, Len::Text),
];

/// Calls whose address is kept by the kernel, which compares it with the program's.
pub(crate) const KEPT: [u64; 2] = [nr::SET_TID_ADDRESS, nr::SET_ROBUST_LIST];
/// Arguments that are numbers, as bits: one may look like an address of a program at low addresses.
pub(crate) const NUMBERS: &[(u64, u8)] = &[
    (nr::READ, 0b101),
    (nr::WRITE, 0b101),
    (nr::OPEN, 0b110),
    (nr::CLOSE, 0b1),
    (nr::POLL, 0b110),
    (nr::LSEEK, 0b111),
    (nr::IOCTL, 0b11),
    (nr::PREAD64, 0b1101),
    (nr::PWRITE64, 0b1101),
    (nr::READV, 0b101),
    (nr::WRITEV, 0b101),
    (nr::SENDFILE, 0b1011),
    (nr::CONNECT, 0b101),
    (nr::SENDTO, 0b10_1101),
    (nr::RECVFROM, 0b1101),
    (nr::SENDMSG, 0b101),
    (nr::RECVMSG, 0b101),
    (nr::KILL, 0b11),
    (nr::FCNTL, 0b11),
    (nr::TRUNCATE, 0b10),
    (nr::FTRUNCATE, 0b11),
    (nr::GETDENTS, 0b101),
    (nr::GETCWD, 0b10),
    (nr::MKDIR, 0b10),
    (nr::READLINK, 0b100),
    (nr::CHMOD, 0b10),
    (nr::MLOCK, 0b10),
    (nr::PRCTL, 0b1),
    (nr::READAHEAD, 0b111),
    (nr::FUTEX, 0b10_0110),
    (nr::GETDENTS64, 0b101),
    (nr::FADVISE64, 0b1111),
    (nr::EXIT_GROUP, 0b1),
    (nr::EPOLL_WAIT, 0b1101),
    (nr::OPENAT, 0b1101),
    (nr::SPLICE, 0b11_0101),
    (nr::SYNC_FILE_RANGE, 0b1111),
    (nr::EPOLL_PWAIT, 0b10_1101),
    (nr::FALLOCATE, 0b1111),
    (nr::PREADV, 0b1_1101),
    (nr::PWRITEV, 0b1_1101),
    (nr::PROCESS_VM_READV, 0b11_0101),
    (nr::PROCESS_VM_WRITEV, 0b11_0101),
    (nr::GETRANDOM, 0b110),
    (nr::COPY_FILE_RANGE, 0b11_0101),
    (nr::PREADV2, 0b11_1101),
    (nr::PWRITEV2, 0b11_1101),
];
/// Calls by which the kernel accesses memory on its own later: there are none under tracing.
pub(crate) const ABSENT: [u64; 3] = [nr::IO_SETUP, nr::IO_URING_SETUP, nr::RSEQ];

/// Calls with an array of buffers: the kernel writes there, or reads.
pub(crate) const ARRAYS: [(u64, u8); 9] = [
    (nr::VMSPLICE, wire::FETCH),
    (nr::READV, wire::FILL),
    (nr::WRITEV, wire::FETCH),
    (nr::PREADV, wire::FILL),
    (nr::PWRITEV, wire::FETCH),
    (nr::PROCESS_VM_READV, wire::FILL),
    (nr::PROCESS_VM_WRITEV, wire::FETCH),
    (nr::PREADV2, wire::FILL),
    (nr::PWRITEV2, wire::FETCH),
];

/// Bytes of a text with its 0, or up to what cannot be read.
fn text_len(address: u64) -> u64 {
    const MOST: u64 = 4096;
    let mut part = [0_u8; 64];
    let mut at = 0;
    while at < MOST {
        // It may end just before what cannot be read.
        let place = address.wrapping_add(at);
        let len = (PAGE - place % PAGE).min(part.len() as u64);
        if !zones::copy(part.as_mut_ptr() as u64, place, len) {
            return at;
        }
        if let Some(end) = part[..len as usize].iter().position(|&byte| byte == 0) {
            return at + end as u64 + 1;
        }
        at += len;
    }
    MOST
}
