//! Thunks: for each instruction that was met, how to carry it out on the alias of its memory. The
//! tool decodes and encodes; it is asked once for each instruction and distance.
//!
//! All of it is under the tracer's [lock](super::lock::LOCK).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::context::Context;
use super::wire::{ACCESSES, Access, Answer, FOR_THUNK, LONGEST, Plan, Question, THUNK};
use super::zones;
use super::{answers, options, questions, sys};

/// An instruction.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Thunk {
    pub(crate) ip: u64,
    pub(crate) delta: i64,
    /// Where the thunk lies.
    pub(crate) code: u64,
    pub(crate) plan: u8,
    pub(crate) len: u8,
    pub(crate) accesses_len: u8,
    pub(crate) string: u8,
    pub(crate) element: u8,
    zero: [u8; 3],
    pub(crate) accesses: [Access; ACCESSES],
    bytes: [u8; 16],
    /// How often it was asked for, if that is counted.
    pub(crate) faults: u64,
}

/// Instructions that are known at a time, a power of two.
const KNOWN: u64 = 1 << 18;
/// Slots that an instruction may be in.
const TURNS: u64 = 64;
/// From a thunk to the next: behind its code stand its instruction's address and distance.
const PITCH: u64 = THUNK as u64 + 16;
/// Bytes of an area of thunks.
const AREA: u64 = 1 << 22;
/// Most areas.
const AREAS: usize = 16;
/// How far code may be from its area: more, and its data could be out of reach.
const NEAR: u64 = 1 << 29;

static TABLE: AtomicU64 = AtomicU64::new(0);
/// Areas and how much of each is used.
static PLACES: [[AtomicU64; 2]; AREAS] = [const { [const { AtomicU64::new(0) }; 2] }; AREAS];

/// Before the first fault.
pub(crate) fn init() {
    TABLE.store(sys::memory(KNOWN * size_of::<Thunk>() as u64), Relaxed);
}

impl Thunk {
    /// An instruction of which nothing is known: it is run in place.
    pub(crate) fn unknown(ip: u64, delta: i64) -> Thunk {
        Thunk {
            ip,
            delta,
            code: 0,
            plan: Plan::Step as u8,
            len: 0,
            accesses_len: 0,
            string: 0,
            element: 0,
            zero: [0; 3],
            accesses: [Access {
                kind: 0,
                operand: 0,
                size: 0,
            }; ACCESSES],
            bytes: [0; 16],
            faults: 0,
        }
    }

    /// The accesses in order.
    pub(crate) fn accesses(&self) -> &[Access] {
        &self.accesses[..usize::from(self.accesses_len).min(ACCESSES)]
    }

    /// Puts a thread that is in the thunk to where the program is: to before its instruction, or
    /// behind it.
    pub(crate) fn leave(&self, context: &mut Context) {
        let is_first = context.rip == self.code;
        // ff 25: jmp [rip + distance], by which thunks end.
        // 48 8d 64 24 f8: lea rsp, [rsp - 8], with which that of a call begins.
        const JUMP: u64 = 0x25ff;
        const LOWER: u64 = 0xf8_2464_8d48;
        // SAFETY: a thunk has room for a word at each of its instructions and behind the last.
        unsafe {
            let word = sys::word(context.rip);
            if !is_first && word & 0xffff == JUMP {
                let distance = i64::from((word >> 16) as i32);
                context.rip = sys::word((context.rip + 6).wrapping_add_signed(distance));
                return;
            }
            if !is_first && sys::word(self.code) & 0xff_ffff_ffff == LOWER {
                context.rsp += 8;
            }
        }
        context.rip = self.ip;
    }

    /// Whether the instruction is still the one that the tool was asked about.
    fn is_current(&self, bytes: &[u8; 16]) -> bool {
        let len = usize::from(self.len).min(LONGEST);
        self.bytes[..len] == bytes[..len]
    }
}

fn slot(at: u64) -> *mut Thunk {
    let table = core::ptr::with_exposed_provenance_mut::<Thunk>(TABLE.load(Relaxed) as usize);
    table.wrapping_add((at % KNOWN) as usize)
}

/// Where the search for an instruction begins.
fn first_slot(ip: u64, delta: i64) -> u64 {
    (ip ^ delta.cast_unsigned().rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// How the instruction at `ip` is carried out on memory `delta` away. `bytes` is what stands there,
/// or would without a breakpoint.
pub(crate) fn of(ip: u64, delta: i64, bytes: &[u8; 16], len: u64) -> Option<Thunk> {
    let first = first_slot(ip, delta);
    for turn in 0..TURNS {
        let place = slot(first + turn);
        // SAFETY: the slot is one of the table, of which zeros are entries; by the lock invariant
        // nobody else uses it, and `known` is not used beyond `ask`.
        let known = unsafe { &mut *place };
        if known.ip == ip && known.delta == delta && known.is_current(bytes) {
            // Only patches need it: the child of a `fork` would copy the page.
            known.faults += u64::from(options::traces(options::PATCH));
            return Some(*known);
        }
        if known.ip == 0 || (known.ip == ip && known.delta == delta) || turn == TURNS - 1 {
            let thunk = ask(ip, delta, bytes, len)?;
            // SAFETY: `place` is a slot of the table, which by the lock invariant nobody else uses.
            unsafe { place.write(thunk) };
            return Some(thunk);
        }
    }
    None
}

/// Whether `ip` lies in a thunk, and then of which instruction.
pub(crate) fn instruction_of(ip: u64) -> Option<Thunk> {
    let area = PLACES.iter().map(|place| place[0].load(Relaxed));
    let area = { area }.find(|&start| start != 0 && (start..start + AREA).contains(&ip))?;
    let place = area + (ip - area) / PITCH * PITCH;
    // SAFETY: `ask` wrote both words before anybody could run the thunk.
    let (own, delta) = unsafe {
        let words = place + THUNK as u64;
        (sys::word(words), sys::word(words + 8).cast_signed())
    };
    let first = first_slot(own, delta);
    let known = (0..TURNS).find_map(|turn| {
        // SAFETY: the slot is one of the table, which by the lock invariant nobody else uses.
        let thunk = unsafe { *slot(first + turn) };
        (thunk.code == place).then_some(thunk)
    });
    // Another may have taken its place in the table.
    Some(known.unwrap_or(Thunk {
        code: place,
        ..Thunk::unknown(own, delta)
    }))
}

/// A place for a thunk of an instruction.
fn place_near(ip: u64) -> Option<u64> {
    for [start, used] in &PLACES {
        let mut area = start.load(Relaxed);
        if area == 0 {
            area = zones::reserve_near(ip, AREA)?;
            let all = sys::PROT_READ | sys::PROT_WRITE | sys::PROT_EXEC;
            // SAFETY: the place was just reserved.
            if sys::failed(unsafe { sys::protect(area, AREA, all) }) {
                sys::die(b"memory for code cannot be had");
            }
            start.store(area, Relaxed);
        }
        let at = used.load(Relaxed);
        if area.abs_diff(ip) < NEAR && at + PITCH <= AREA {
            used.store(at + PITCH, Relaxed);
            return Some(area + at);
        }
    }
    None
}

fn ask(ip: u64, delta: i64, bytes: &[u8; 16], len: u64) -> Option<Thunk> {
    let code = place_near(ip)?;
    let question = Question {
        asks: FOR_THUNK,
        ip,
        thunk: code,
        delta,
        len,
        bytes: *bytes,
    };
    // SAFETY: all zeros are an answer.
    let mut answer: Answer = unsafe { core::mem::zeroed() };
    let is_known = answers::find(&question, &mut answer);
    let is_answered = is_known || questions::ask(&question, &mut answer);
    if is_answered && !is_known {
        answers::keep(&question, &answer);
    }
    if !is_answered || usize::from(answer.code_len) > THUNK {
        answer.plan = Plan::Step as u8;
        answer.accesses_len = 0;
    }
    // SAFETY: within the area, where nobody runs anything yet.
    unsafe {
        sys::set_word(code + THUNK as u64, ip);
        sys::set_word(code + THUNK as u64 + 8, delta.cast_unsigned());
    }
    if answer.plan == Plan::Copy as u8 || answer.plan == Plan::Elements as u8 {
        // SAFETY: within the area, where nobody runs anything yet.
        unsafe {
            sys::copy(
                code,
                answer.code.as_ptr() as u64,
                u64::from(answer.code_len).min(THUNK as u64),
            );
        };
    }
    Some(of_answer(ip, delta, code, &answer, bytes))
}

fn of_answer(ip: u64, delta: i64, code: u64, answer: &Answer, bytes: &[u8; 16]) -> Thunk {
    Thunk {
        ip,
        delta,
        code,
        plan: answer.plan,
        len: answer.len,
        accesses_len: answer.accesses_len,
        string: answer.string,
        element: answer.element,
        zero: [0; 3],
        accesses: answer.accesses,
        bytes: *bytes,
        faults: 1,
    }
}

/// Reads the code at `ip`; how many bytes there are.
pub(crate) fn code_at(ip: u64, bytes: &mut [u8; 16]) -> u64 {
    let place = bytes.as_mut_ptr() as u64;
    let first = (sys::PAGE - ip % sys::PAGE).min(16);
    // SAFETY: there may be no code, or none on the next page, which `try_copy` finds out.
    unsafe {
        if !sys::try_copy(place, ip, first) {
            0
        } else if first < 16 && sys::try_copy(place + first, ip + first, 16 - first) {
            16
        } else {
            first
        }
    }
}
