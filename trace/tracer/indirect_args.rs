//! Arguments of system calls that point to memory, or to arrays of what does: the kernel is given
//! aliases, and copies of what is not one piece for it.

use core::sync::atomic::Ordering::Relaxed;

use super::accesses::record;
use super::arguments::{ARRAYS, BLOCKS, Len};
use super::folder::Path;
use super::masks::OURS;
use super::numbers as nr;
use super::sys::{self, PAGE};
use super::wire;
use super::{aside, threads, zones};

/// Most bytes that are copied for a call.
const LARGEST: u64 = 64 << 20;

/// Calls with a set of signals, and which argument it is.
const MASKS: [(u64, usize); 4] = [
    (nr::RT_SIGSUSPEND, 0),
    (nr::PPOLL, 3),
    (nr::EPOLL_PWAIT, 4),
    (nr::EPOLL_PWAIT2, 4),
];

/// A call whose arguments are aimed.
pub(crate) struct Aimed {
    pub(crate) number: u64,
    /// Where the program makes it.
    pub(crate) ip: u64,
    /// Arguments as the program has them.
    pub(crate) own: [u64; 6],
    /// As the kernel gets them.
    pub(crate) told: [u64; 6],
    /// Start and bytes of memory for what the kernel gets in place of the program's.
    pub(crate) scratch: [u64; 2],
}

impl Aimed {
    /// Aims what arguments point to, and tells of it.
    pub(crate) fn nested(&mut self) {
        let own = self.own;
        match self.number {
            nr::SENDMSG | nr::RECVMSG => self.messages(1),
            nr::SENDMMSG | nr::RECVMMSG => self.messages(own[2] & 0xffff_ffff),
            nr::PSELECT6 => self.pair_with_mask(),
            sys::EXECVE => self.program(1),
            sys::EXECVEAT => self.program(2),
            number => {
                if let Some((_, kind)) = ARRAYS.iter().find(|it| it.0 == number) {
                    self.buffers(*kind);
                } else if let Some((_, at)) = MASKS.iter().find(|it| it.0 == number) {
                    self.told[*at] = filtered(own[*at], &mut self.scratch);
                }
            }
        }
    }

    /// Memory for arguments that the kernel gets in place of the program's.
    fn scratch_of(&mut self, len: u64) -> u64 {
        let len = len.next_multiple_of(PAGE);
        self.scratch = [sys::memory(len), len];
        self.scratch[0]
    }

    /// `pselect6`: its last argument is a set of signals and its length.
    fn pair_with_mask(&mut self) {
        let mut pair = [0_u64; 2];
        if self.own[5] == 0 || !zones::copy((&raw mut pair) as u64, self.own[5], 16) {
            return;
        }
        let mask = filtered(pair[0], &mut self.scratch);
        if mask != pair[0] {
            if self.scratch[1] == 0 {
                self.scratch_of(PAGE);
            }
            let place = self.scratch[0] + 64;
            // SAFETY: the scratch page has room behind the mask.
            unsafe {
                sys::set_word(place, mask);
                sys::set_word(place + 8, pair[1]);
            }
            self.told[5] = place;
        }
    }

    /// Records what the kernel will read; what is not one piece for the kernel, it gets a copy of.
    pub(crate) fn blocks(&mut self) {
        let (number, ip, own) = (self.number, self.ip, self.own);
        let is_free = self.scratch[1] == 0;
        let mut used = 0;
        for &(_, argument, kind, len) in BLOCKS.iter().filter(|it| it.0 == number) {
            let address = own[argument];
            let most = len.bytes(&own, argument, None);
            let is_whole = zones::is_one_piece(address, most);
            if kind == wire::FETCH && !(self.told[argument] == address && is_whole) {
                record(kind, ip, address, most);
            }
            if is_whole {
                continue;
            }
            let bytes = most.min(LARGEST);
            if !is_free {
                // Other arguments have the memory.
                release_pages(address, bytes);
                self.told[argument] = address;
                continue;
            }
            if self.scratch[1] == 0 {
                // For all that are copied: the others are small.
                self.scratch_of(bytes + 4 * PAGE);
            }
            let place = self.scratch[0] + used;
            // If it cannot be accessed, the kernel shall find out where.
            if used + bytes <= self.scratch[1]
                && (kind == wire::FETCH || zones::may_store(address, bytes))
                && zones::copy(place, address, bytes)
            {
                self.told[argument] = place;
                used += bytes.next_multiple_of(64);
                if most > LARGEST {
                    // A part of what is asked for.
                    match len {
                        Len::Argument(of, 1) => self.told[of] = LARGEST,
                        Len::Result(1) => self.told[argument + 1] = LARGEST,
                        _ => {}
                    }
                }
            }
        }
    }

    /// Arrays of buffers, as `readv` takes them; `kind` is what the kernel does with the first.
    fn buffers(&mut self, kind: u8) {
        const MOST: u64 = 1024;
        let other = match kind {
            wire::FILL => wire::FETCH,
            _ => wire::FILL,
        };
        let arrays = [(1, kind), (3, other)];
        // Of those, the second array is of another process, or of this one, too.
        let both = matches!(self.number, nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV)
            && self.own[0] == sys::process();
        let arrays = &arrays[..usize::from(both) + 1];
        let counts = arrays.iter().map(|&(at, _)| self.own[at + 1]);
        let count: u64 = counts.clone().map(|count| count.min(MOST + 1)).sum();
        if count == 0 || counts.clone().any(|count| count > MOST) {
            return;
        }
        let mut to = self.scratch_of(count * 16);
        for &(at, kind) in arrays {
            let count = self.own[at + 1];
            if zones::copy(to, self.own[at], count * 16) {
                aim_buffers(to, count, kind, self.ip);
                self.told[at] = to;
            }
            to += count * 16;
        }
    }

    /// `count` messages.
    fn messages(&mut self, count: u64) {
        const MOST: u64 = 1024;
        let (from, number) = (self.own[1], self.number);
        let (count, step) = (count.min(MOST), step_of_messages(number));
        let kind = if number == nr::SENDMSG || number == nr::SENDMMSG {
            wire::FETCH
        } else {
            wire::FILL
        };
        let mut words = [0_u64; 7];
        let mut buffers = 0;
        for at in 0..count {
            if !zones::copy((&raw mut words) as u64, from + at * step, MESSAGE) || words[3] > MOST {
                return;
            }
            buffers += words[3];
        }
        if count == 0 {
            return;
        }
        let to = self.scratch_of(count * step + buffers * 16);
        let mut place = to + count * step;
        for at in 0..count {
            zones::copy((&raw mut words) as u64, from + at * step, MESSAGE);
            let len = words[3].min(buffers);
            buffers -= len;
            if len > 0 && !zones::copy(place, words[2], len * 16) {
                return;
            }
            aim_buffers(place, len, kind, self.ip);
            words[0] = zones::usable(words[0]);
            words[2] = place;
            words[4] = zones::usable(words[4]);
            place += len * 16;
            // SAFETY: the scratch memory is ours.
            unsafe { sys::copy(to + at * step, (&raw const words) as u64, MESSAGE) };
        }
        self.told[1] = to;
        if number == nr::SENDMMSG || number == nr::RECVMMSG {
            self.told[2] = count;
        }
    }

    /// `execve`: its arrays of texts are the arguments `first` and the next.
    fn program(&mut self, first: usize) {
        const MOST: u64 = 1 << 20;
        let count = |array: u64| {
            let mut len = 0;
            let mut word = 0_u64;
            while array != 0 && len < MOST {
                if !zones::copy((&raw mut word) as u64, array + len * 8, 8) || word == 0 {
                    break;
                }
                len += 1;
            }
            len + 1
        };
        let arrays = [self.own[first], self.own[first + 1]];
        let lens = arrays.map(count);
        let mut to = self.scratch_of((lens[0] + lens[1]) * 8);
        if !sys::is_own_process() {
            // A child of `vfork` does not come back to give this back.
            for (word, value) in threads::this().kept.iter().zip(self.scratch) {
                word.store(value, Relaxed);
            }
        }
        for (index, (array, len)) in arrays.into_iter().zip(lens).enumerate() {
            if array == 0 {
                continue;
            }
            self.told[first + index] = to;
            for at in 0..len {
                let mut word = 0_u64;
                if at + 1 < len {
                    zones::copy((&raw mut word) as u64, array + at * 8, 8);
                }
                // SAFETY: within the scratch memory.
                unsafe { sys::set_word(to, zones::usable(word)) };
                to += 8;
            }
        }
        record(wire::EXEC, self.ip, self.own[first - 1], 0);
        let mut name = [0_u8; 512];
        let len = Len::Text
            .bytes(&self.own, 0, None)
            .min(name.len() as u64 - 1);
        // Relative to a folder, it is not looked at.
        if first == 1 && zones::copy((&raw mut name) as u64, self.own[0], len) {
            let name = name.as_ptr().cast();
            // SAFETY: there is a 0 behind the bytes that were copied.
            unsafe {
                if let Some(why) = aside::reason(name) {
                    aside::say(Path::in_folder().as_bytes(), name, why);
                }
            }
        }
    }
}

/// A set of signals without ours, in memory of our own.
fn filtered(at: u64, scratch: &mut [u64; 2]) -> u64 {
    let mut set = 0_u64;
    if at == 0 || !zones::copy((&raw mut set) as u64, at, 8) || set & OURS == 0 {
        return zones::usable(at);
    }
    *scratch = [sys::memory(PAGE), PAGE];
    // SAFETY: just mapped.
    unsafe { sys::set_word(scratch[0], set & !OURS) };
    scratch[0]
}

/// Releases the pages of some bytes.
fn release_pages(start: u64, len: u64) {
    let last = start.saturating_add(len) | (PAGE - 1);
    zones::release(start & !(PAGE - 1), last.saturating_add(1));
}

/// Some calls take a struct whose second word points to more: rare enough not to be traced.
pub(crate) fn release(number: u64, own: &[u64; 6]) {
    const SIOCGIFCONF: u64 = 0x8912;
    const SOL_SOCKET: u64 = 1;
    const FILTERS: [u64; 2] = [26, 51];
    const PR_SET_SECCOMP: u64 = 22;
    let (place, is_filter) = match (number, own) {
        (nr::IOCTL, [_, SIOCGIFCONF, place, ..]) => (*place, false),
        (nr::SETSOCKOPT, [_, SOL_SOCKET, option, place, ..]) if FILTERS.contains(option) => {
            (*place, true)
        }
        (nr::PRCTL, [PR_SET_SECCOMP, _, place, ..]) | (nr::SECCOMP, [_, _, place, ..]) => {
            (*place, true)
        }
        _ => return,
    };
    let mut words = [0_u64; 2];
    if zones::copy((&raw mut words) as u64, place, 16) {
        let [len, start] = words;
        // Instructions of 8 bytes, or bytes.
        let len = if is_filter {
            (len & 0xffff) * 8
        } else {
            len & 0xffff_ffff
        };
        release_pages(start, len);
    }
}

/// Aims the buffers of an array of ours, and tells of them.
fn aim_buffers(at: u64, count: u64, kind: u8, ip: u64) {
    for buffer in (0..count).map(|index| at + index * 16) {
        // SAFETY: the array is ours.
        unsafe {
            let address = sys::word(buffer);
            // The kernel takes no more.
            let len = sys::word(buffer + 8).min(0x7fff_f000);
            if !zones::is_one_piece(address, len) {
                release_pages(address, len);
            }
            let usable = zones::usable(address);
            if usable != address {
                record(kind, ip, address, sys::word(buffer + 8));
                sys::set_word(buffer, usable);
            }
        }
    }
}

/// Bytes of a message for `sendmsg` and `recvmsg`, which is seven words.
const MESSAGE: u64 = 56;

/// How far one message lies behind the other.
fn step_of_messages(number: u64) -> u64 {
    // With its length behind it.
    if number == nr::SENDMMSG || number == nr::RECVMMSG {
        MESSAGE + 8
    } else {
        MESSAGE
    }
}

/// What the kernel has set in messages.
pub(crate) fn return_messages(number: u64, to: u64, from: u64, result: i64) {
    let step = step_of_messages(number);
    let count = if step == MESSAGE { 1 } else { result };
    for at in (0..count.cast_unsigned()).map(|at| at * step) {
        let receives = number == nr::RECVMSG || number == nr::RECVMMSG;
        // Lengths of name and control data, flags; the length.
        let parts: &[(u64, u64)] = match (receives, step == MESSAGE) {
            (true, true) => &[(8, 4), (40, 8), (48, 4)],
            (true, false) => &[(8, 4), (40, 8), (48, 4), (56, 4)],
            (false, true) => &[],
            (false, false) => &[(56, 4)],
        };
        for (offset, len) in parts {
            zones::copy(to + at + offset, from + at + offset, *len);
        }
    }
}
