//! Walks the stack of the calling thread by the rules in `.eh_frame`, as a C++ exception would.
//!
//! It may be used at any moment: within `malloc`, before `main`, while a library is loaded, in a
//! signal handler. It allocates nothing and waits for no lock; only a module that was not seen
//! before is asked for under the dynamic linker's lock. What is found out about an address in the
//! code is kept in one word of a table that all threads share.
//!
//! A walk that goes wrong ends early or contains wrong addresses. It never reads where nothing is
//! mapped.

mod cfi;
mod dependences;
mod memo;
mod memory;
mod modules;
pub mod path;
#[cfg(test)]
mod tests;

use core::arch::asm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use cfi::Rule;
use dependences::WalkDependences;
pub use memo::Memo;
use memo::Vacant;
use memory::Reader;
pub use modules::ModuleCallback;
use path::PathCursor;
pub use path::SharedFrames;

/// Registers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Frame {
    /// The instruction.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer.
    pub bp: u64,
}

/// What is found of a stack.
#[derive(Debug)]
pub enum Stack<'m> {
    /// It was found before, and this was noted.
    Known(u32),
    /// It was walked.
    Walked {
        /// How many addresses there are.
        len: usize,
        /// Outermost frames were left out because there was no room.
        is_cut: bool,
        /// What of it is known.
        kept: SharedFrames,
        /// Where to note what the same stack is known by from now on.
        note: Option<&'m mut u32>,
    },
}

/// Writes the return addresses of the calling thread's stack into `into`, innermost first, without
/// frames of the library that [`leave_out_own`] was called in, unless the stack is in `memo`.
///
/// The first is where the caller returns to. For a function that was interrupted by a signal
/// it is the address of the next instruction plus 1, so that the instruction before each address
/// is the one that matters. Of modules that were loaded to one place in turn, all but the first
/// have their number above the address.
///
/// `memo` is of the calling thread. `report` gets every loaded module, once.
///
/// # Safety
///
/// `own` is the stack that the calling thread has begun on, from its address to its end, the same
/// at each call, or zeros if it is not known.
#[inline(always)]
pub unsafe fn stack<'m>(
    into: &mut [u64],
    memo: Option<&'m mut Memo>,
    own: [u64; 2],
    report: ModuleCallback,
) -> Stack<'m> {
    let (ip, sp, bp);
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "lea {}, [rip]",
            "mov {}, rsp",
            "mov {}, rbp",
            out(reg) ip,
            out(reg) sp,
            out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    let frame = Frame { ip, sp, bp };
    let known = memo.as_ref().map_or(0, |memo| memo.find(frame));
    if known != 0 {
        return Stack::Known(known);
    }
    let vacant = memo.map(|memo| memo.vacant(frame));
    // SAFETY: the frame is that of this function, and `own` this thread's stack (`# Safety`).
    let result = unsafe { walk(frame, own, into, vacant, report) };
    // SAFETY: does nothing. It keeps `walk` from being called last, after the frame is gone.
    unsafe { asm!("", options(nostack, preserves_flags)) };
    result
}

/// Leaves frames of the library that this is linked into out of all stacks. To be called before the
/// first walk.
pub fn leave_out_own() {
    modules::leave_out_own();
}

/// From this bit on, an address has the number of its module, if another was at its place before.
pub const NUMBER_SHIFT: u32 = 48;

/// Forgets what is known of modules: to be called after a `dlclose`.
pub fn forget() {
    modules::forget();
    dependences::forget();
    for entry in &RULES {
        // Most pages of the table were never written to and need not be.
        if entry.load(Relaxed) != 0 {
            entry.store(0, Relaxed);
        }
    }
}

/// Reports all modules again that were reported so far, in the same order: of two in one place the
/// later one counts. For the child of a `fork`, which need not forget anything.
pub fn report_again(report: ModuleCallback) {
    modules::report_again(report);
}

/// Addresses in user space have 47 bits.
const ADDRESS_BITS: u32 = 47;
/// Steps to a frame farther than this, or down, are few: to another stack.
const NEAR: u64 = 1 << 20;
const MAX_JUMPS: u32 = 64;
/// How far up the next frame pointer may be.
const MAX_FRAME: u64 = 8 << 20;
/// Frames of the runtime, which need no room.
const MAX_OWN: usize = 64;

struct Walk<'m> {
    frame: Frame,
    /// `frame.ip` is a return address, not the instruction that was interrupted.
    returns: bool,
    reader: Reader,
    jumps: u32,
    trail: WalkDependences<'m>,
    course: PathCursor<'m>,
    report: ModuleCallback,
}

/// # Safety
///
/// `frame` and `own` are as for [`Reader::new`].
#[inline(never)]
unsafe fn walk<'m>(
    frame: Frame,
    own: [u64; 2],
    into: &mut [u64],
    vacant: Option<Vacant<'m>>,
    report: ModuleCallback,
) -> Stack<'m> {
    // SAFETY: they are this thread's (`# Safety`).
    let reader = unsafe { Reader::new(frame.sp, own) };
    let (entry, path) = vacant.map_or((None, None), |(entry, path)| (Some(entry), Some(path)));
    let mut walk = Walk {
        frame,
        returns: false,
        trail: WalkDependences::new(entry, frame, reader.len()),
        reader,
        jumps: 0,
        course: PathCursor::new(path),
        report,
    };
    // Most frames are done by `common_step`, with the registers at hand.
    let Frame {
        mut ip,
        mut sp,
        mut bp,
    } = frame;
    let (mut len, mut is_cut) = (0, true);
    for _ in 0..=into.len() + MAX_OWN {
        let mut was_full = false;
        let each = |ip| {
            match into.get_mut(len) {
                Some(entry) => *entry = ip,
                None => was_full = true,
            }
            len += usize::from(!was_full);
            !was_full
        };
        let Walk {
            course,
            reader,
            trail,
            ..
        } = &mut walk;
        if let Some(frame) = course.run(reader, trail, each) {
            Frame { ip, sp, bp } = frame;
        }
        if was_full {
            break;
        }
        if let Some(caller) = walk.common_step(ip, sp, bp) {
            (ip, sp, bp) = caller;
        } else {
            walk.frame = Frame { ip, sp, bp };
            if walk.step().is_none() {
                walk.trail.give_up();
                is_cut = false;
                break;
            }
            Frame { ip, sp, bp } = walk.frame;
        }
        if ip == 0 || ip >> ADDRESS_BITS != 0 {
            is_cut = false;
            break;
        }
        let is_own = modules::is_own(ip);
        walk.course.arrives(Frame { ip, sp, bp }, is_own);
        if is_own {
            continue;
        }
        let Some(entry) = into.get_mut(len) else {
            break;
        };
        *entry = ip + u64::from(!walk.returns);
        len += 1;
    }
    modules::tell_apart(&mut into[..len]);
    Stack::Walked {
        len,
        is_cut,
        kept: walk.course.end(is_cut),
        note: walk.trail.end(),
    }
}

impl Walk<'_> {
    /// What [`Walk::step`] does if the rule is in the table and all reads go to the window; else
    /// `None`.
    #[inline(always)]
    fn common_step(&mut self, ip: u64, sp: u64, bp: u64) -> Option<(u64, u64, u64)> {
        let (base, cfa, bp_at, by_bp) = match cached(ip.wrapping_sub(1))? {
            Rule::Sp { cfa, bp } => (sp, cfa, bp, false),
            Rule::Bp { cfa, bp: bp_at } => (bp, cfa, bp_at, true),
            _ => return None,
        };
        let cfa = base.wrapping_add_signed(cfa);
        if !self.returns || cfa.wrapping_sub(sp).wrapping_sub(1) >= NEAR {
            return None;
        }
        let ip = self.reader.word_of_window(cfa.wrapping_sub(8))?;
        let saved = match bp_at {
            0 => bp,
            _ => self.reader.word_of_window(cfa.wrapping_add_signed(bp_at))?,
        };
        let (ip_at, bp_at) = match bp_at {
            0 => (cfa.wrapping_sub(8), 0),
            _ => (cfa.wrapping_sub(8), cfa.wrapping_add_signed(bp_at)),
        };
        self.trail.step(bp, by_bp, [ip_at, ip], bp_at);
        self.course.leaves(ip_at, bp_at, by_bp);
        Some((ip, cfa, saved))
    }

    /// Goes on to the caller, whose address is 0 at the end of the stack. `None` if there is none
    /// that can be found.
    #[inline(never)]
    fn step(&mut self) -> Option<()> {
        // The call comes before the address it returns to, perhaps in another function.
        let pc = self.frame.ip - u64::from(self.returns);
        let Frame { sp, bp, .. } = self.frame;
        let rule = match cached(pc) {
            Some(rule) => rule,
            None => find(pc, self.report),
        };
        let (cfa, bp_at) = match rule {
            Rule::Sp { cfa, bp } => {
                let cfa = sp.wrapping_add_signed(cfa);
                (cfa, (bp != 0).then(|| cfa.wrapping_add_signed(bp)))
            }
            Rule::Bp { cfa, bp: bp_at } => {
                self.trail.used(bp);
                let cfa = bp.wrapping_add_signed(cfa);
                (cfa, (bp_at != 0).then(|| cfa.wrapping_add_signed(bp_at)))
            }
            Rule::Aligned { cfa, bp: bp_at } => {
                self.trail.used(bp);
                let place = bp.wrapping_add_signed(cfa);
                let cfa = self.reader.word(place)?;
                self.trail.word(place, cfa);
                (cfa, Some(bp.wrapping_add_signed(bp_at)))
            }
            Rule::Signal => return self.step_over_signal(),
            Rule::End => {
                self.frame.ip = 0;
                return Some(());
            }
            Rule::Unknown => return self.step_by_frame_pointer(pc),
        };
        if cfa.wrapping_sub(sp).wrapping_sub(1) >= NEAR {
            self.jump()?;
        }
        let ip_at = cfa.wrapping_sub(8);
        let ip = self.reader.word(ip_at)?;
        self.trail.word(ip_at, ip);
        if let Rule::Sp { .. } | Rule::Bp { .. } = rule {
            let by_bp = matches!(rule, Rule::Bp { .. });
            self.course.leaves(ip_at, bp_at.unwrap_or(0), by_bp);
        }
        let bp = match bp_at {
            Some(at) => {
                self.trail.saved(at);
                self.reader.word(at)?
            }
            None => bp,
        };
        self.returns = true;
        self.frame = Frame { ip, sp: cfa, bp };
        Some(())
    }

    /// Takes the registers from the `ucontext` that the kernel put on the stack.
    fn step_over_signal(&mut self) -> Option<()> {
        const BP: u64 = 120;
        const SP: u64 = 160;
        const IP: u64 = 168;
        self.jump()?;
        let context = self.frame.sp;
        let mut register = |at| self.reader.word(context.wrapping_add(at));
        self.frame = Frame {
            ip: register(IP)?,
            sp: register(SP)?,
            bp: register(BP)?,
        };
        self.returns = false;
        Some(())
    }

    /// Takes `rbp` for a frame pointer, if it looks like one.
    #[cold]
    fn step_by_frame_pointer(&mut self, pc: u64) -> Option<()> {
        self.trail.give_up();
        self.course.give_up();
        let Frame { sp, bp, .. } = self.frame;
        if bp.wrapping_sub(sp) >= MAX_FRAME {
            return None;
        }
        let next = self.reader.word(bp)?;
        let ip = self.reader.word(bp.wrapping_add(8))?;
        // From a library the way leads to a module. Generated code may call generated code.
        let known = |address| modules::find(address, self.report).is_some();
        if !known(ip.wrapping_sub(1)) && known(pc) {
            return None;
        }
        self.frame = Frame {
            ip,
            sp: bp + 16,
            bp: next,
        };
        self.returns = true;
        Some(())
    }

    /// Counts a step that need not lead up the same stack, so that a walk in circles ends.
    fn jump(&mut self) -> Option<()> {
        self.trail.give_up();
        self.course.give_up();
        self.jumps += 1;
        (self.jumps <= MAX_JUMPS).then_some(())
    }
}

const INDEX_BITS: u32 = 16;
const RULE_BITS: u32 = 33;

/// Packed rules, below the part of the address that does not follow from the index. So an entry is
/// one word, which threads read and write as they like. 0 is no entry.
static RULES: [AtomicU64; 1 << INDEX_BITS] = [const { AtomicU64::new(0) }; 1 << INDEX_BITS];

const _: () = assert!(ADDRESS_BITS - INDEX_BITS + RULE_BITS == u64::BITS);

/// The entry of `pc`, and what it holds besides the rule.
#[inline(always)]
fn entry(pc: u64) -> (&'static AtomicU64, u64) {
    let tag = pc >> INDEX_BITS;
    // Without the tag, functions a multiple of 64 KiB apart would share entries.
    let index = (pc ^ tag) & ((1 << INDEX_BITS) - 1);
    (&RULES[index as usize], tag)
}

#[inline(always)]
fn cached(pc: u64) -> Option<Rule> {
    let (entry, tag) = entry(pc);
    let held = entry.load(Relaxed);
    (held >> RULE_BITS == tag).then(|| Rule::unpack(held))
}

#[cold]
#[inline(never)]
fn find(pc: u64, report: ModuleCallback) -> Rule {
    // Code outside all modules is not kept: it may be generated, and change.
    let Some(module) = modules::find(pc, report) else {
        return Rule::Unknown;
    };
    // SAFETY: the linker has just said that the module is loaded; this thread runs in it.
    let rule = unsafe { module.rule(pc) }.unwrap_or(Rule::Unknown);
    let (entry, tag) = entry(pc);
    if let Some(packed) = rule.pack() {
        entry.store(tag << RULE_BITS | packed, Relaxed);
    }
    rule
}

/// Whether `address` is of the executable or a library: their code or variables.
pub fn is_loaded(address: u64) -> bool {
    modules::is_loaded(address)
}

/// Reports the module that contains `pc` if it was not seen before.
pub fn report(pc: u64, report: ModuleCallback) {
    modules::find(pc, report);
}
