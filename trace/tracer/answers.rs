//! What the tool has answered to processes of the same run: a file that all of them map, so that
//! short programs need not ask for each instruction again.
//!
//! An answer depends on addresses only by its jump back and by one displacement, which are set
//! anew. What a process finds here is what one with the same rights has written: the folder is the
//! user's own.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::folder::Path;
use super::sys;
use super::wire::{Answer, Plan, Question, THUNK};

/// Where the file is mapped; 0: it is not.
static MAP: AtomicU64 = AtomicU64::new(0);

const SLOTS: usize = 1 << 15;
const MOST: u64 = 1 << 14;
/// Slots that an answer may be in.
const TURNS: u64 = 16;

#[repr(C)]
struct Table {
    /// How many numbers were given to answers.
    count: AtomicU64,
    /// A hash without its low bits, and in these the number of the answer plus 1. 0: free.
    slots: [AtomicU64; SLOTS],
    /// **Kept invariant**: an entry is written once, by who was given its number, before a
    /// slot names it.
    kept: [(Question, Answer); MOST as usize],
}

const NUMBER: u64 = 2 * MOST - 1;

/// Maps the file. Without it all questions are asked.
pub(crate) fn init() {
    const CREATE_TO_READ_AND_WRITE: u64 = 0o100 | 0o2;
    const LEN: u64 = size_of::<Table>() as u64;
    let mut path = Path::in_folder();
    path.text(b"answers");
    // SAFETY: the path ends with 0, the descriptor is ours, and `map` puts the file where nothing
    // is. No process makes the file shorter.
    unsafe {
        let words = [path.pointer(), CREATE_TO_READ_AND_WRITE, 0o600, 0, 0, 0];
        let fd = sys::call(sys::OPEN, words);
        if sys::failed(fd) {
            return;
        }
        let both = sys::PROT_READ | sys::PROT_WRITE;
        if sys::lengthen(fd.cast_unsigned(), LEN) {
            let map = sys::map(sys::far(LEN), LEN, both, sys::MAP_SHARED, fd, 0);
            if !sys::failed(map) {
                MAP.store(map.cast_unsigned(), Relaxed);
            }
        }
        sys::call(sys::CLOSE, [fd.cast_unsigned(), 0, 0, 0, 0, 0]);
    }
}

fn table() -> *mut Table {
    core::ptr::with_exposed_provenance_mut(MAP.load(Relaxed) as usize)
}

fn hash(question: &Question) -> u64 {
    let words = u128::from_le_bytes(question.bytes);
    let mixed = (words as u64 ^ (words >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn slots(hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
    let table = table();
    (0..TURNS).map(move |turn| {
        let at = ((hash >> 40) + turn) as usize % SLOTS;
        // SAFETY: `find` and `keep` call this where the table is mapped, which it stays; `at` is
        // below `SLOTS`, and slots are only accessed as atomics.
        unsafe { &(*table).slots[at] }
    })
}

/// Looks for an answer to a question for a thunk; true if there is one.
pub(crate) fn find(question: &Question, answer: &mut Answer) -> bool {
    if MAP.load(Relaxed) == 0 || question.delta == 0 {
        return false;
    }
    let hash = hash(question);
    for slot in slots(hash) {
        let word = slot.load(Acquire);
        if word == 0 {
            return false;
        }
        let number = (word & NUMBER) - 1;
        if (word ^ hash) & !NUMBER != 0 || number >= MOST {
            continue;
        }
        // SAFETY: `number` is below `MOST`, and by the kept invariant nobody writes the entry any
        // more. Any bytes are a `Question` and an `Answer`.
        let (of, known) = unsafe { (*table()).kept[number as usize] };
        if (of.bytes, of.len) == (question.bytes, question.len)
            && let Some(moved) = moved(known, &of, question)
        {
            *answer = moved;
            return true;
        }
    }
    false
}

/// The answer to `of` as it is for the same instruction elsewhere.
fn moved(mut answer: Answer, of: &Question, question: &Question) -> Option<Answer> {
    if answer.plan != Plan::Copy as u8 {
        return Some(answer);
    }
    const WORD: usize = 8;
    let end = usize::from(answer.code_len);
    let [from, to] = [of, question].map(|it| it.ip.wrapping_sub(it.thunk));
    let further = i64::from(answer.is_relative != 0) * to.wrapping_sub(from).cast_signed();
    let further = further.wrapping_add(question.delta.wrapping_sub(of.delta));
    let code = answer.code.get_mut(..end)?;
    let (front, next) = code.split_at_mut_checked(end.checked_sub(WORD)?)?;
    let next: &mut [u8; WORD] = next.try_into().ok()?;
    let ip = u64::from_le_bytes(*next).wrapping_add(question.ip.wrapping_sub(of.ip));
    *next = ip.to_le_bytes();
    let at = usize::from(answer.displacement);
    let aims: &mut [u8; 4] = front.get_mut(at..at + 4)?.try_into().ok()?;
    let distance = i64::from(i32::from_le_bytes(*aims)).checked_add(further)?;
    *aims = i32::try_from(distance).ok()?.to_le_bytes();
    Some(answer)
}

/// Keeps an answer for others, if they can use it.
pub(crate) fn keep(question: &Question, answer: &Answer) {
    // In place, since an operand may be too far away for a copy; by four bytes it may be again.
    let is_of_place = answer.plan == Plan::Step as u8
        || answer.plan == Plan::Copy as u8 && answer.displacement == 0;
    if MAP.load(Relaxed) == 0 || question.delta == 0 || is_of_place {
        return;
    }
    // SAFETY: the table is mapped, and `count` is only accessed as an atomic.
    let number = unsafe { &(*table()).count }.fetch_add(1, Relaxed);
    if number >= MOST || usize::from(answer.code_len) > THUNK {
        return;
    }
    // SAFETY: `number` is below `MOST`, and `fetch_add` gave it to nobody else: no slot names the
    // entry yet.
    unsafe { (&raw mut (*table()).kept[number as usize]).write((*question, *answer)) };
    let hash = hash(question);
    let word = hash & !NUMBER | (number + 1);
    for slot in slots(hash) {
        if (slot.compare_exchange(0, word, Release, Relaxed)).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(ip: u64, thunk: u64, delta: i64) -> Question {
        Question {
            asks: 0,
            ip,
            thunk,
            delta,
            len: 16,
            bytes: [0x90; 16],
        }
    }

    /// Four bytes of a displacement, and the word of the jump back.
    fn answer(displacement: i32, is_relative: u8) -> Answer {
        // SAFETY: all zeros are an answer.
        let mut answer: Answer = unsafe { core::mem::zeroed() };
        (answer.plan, answer.code_len, answer.displacement) = (Plan::Copy as u8, 20, 3);
        answer.is_relative = is_relative;
        answer.code[3..7].copy_from_slice(&displacement.to_le_bytes());
        answer.code[12..20].copy_from_slice(&0x1007_u64.to_le_bytes());
        answer
    }

    #[test]
    fn an_answer_is_moved_by_its_displacement_and_its_jump() {
        let (of, to) = (
            question(0x1000, 0x8000, 0x100),
            question(0x5000, 0x9000, 0x300),
        );
        for (is_relative, expected) in [(0, 64 + 0x200), (1, 64 + 0x200 + 0x3000)] {
            let moved = moved(answer(64, is_relative), &of, &to).expect("it is near enough");
            assert_eq!(moved.code[3..7], i32::to_le_bytes(expected));
            assert_eq!(moved.code[12..20], 0x5007_u64.to_le_bytes());
        }
    }

    #[test]
    fn an_answer_that_would_be_too_far_away_or_is_damaged_is_not_used() {
        let (of, to) = (question(0x1000, 0x8000, 0), question(1 << 40, 0x9000, 0));
        assert!(moved(answer(64, 1), &of, &to).is_none());
        for damage in [
            |it: &mut Answer| it.code_len = 200,
            |it: &mut Answer| it.code_len = 3,
            |it: &mut Answer| it.displacement = 250,
        ] {
            let mut damaged = answer(64, 0);
            damage(&mut damaged);
            assert!(moved(damaged, &of, &of).is_none());
        }
        let mut stepped = answer(64, 0);
        stepped.plan = Plan::Step as u8;
        assert!(moved(stepped, &of, &to).is_some());
    }
}
