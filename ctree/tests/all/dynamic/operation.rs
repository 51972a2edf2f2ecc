//! What a random program on a map consists of.
//!
//! An operation names keys and values by number, so that one program runs on every type of key and
//! value; `program` runs it. It is made from [`Choices`]: the property tests take them from random
//! numbers, the fuzz target (`ctree/fuzz`) from the fuzzer's bytes.

use std::ops::Bound;

/// Where an operation's numbers come from.
pub(crate) trait Choices {
    /// Any number.
    fn number(&mut self) -> usize;
    /// A number from 0 to 255.
    fn byte(&mut self) -> u8;

    /// A number less than `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.number() % end
    }

    /// Yes or no.
    fn flip(&mut self) -> bool {
        self.byte() % 2 == 1
    }
}

/// The number of a key. Few numbers are drawn often, so that keys meet again.
pub(crate) type KeyNumber = u16;

/// The number of a value.
pub(crate) type ValueNumber = u32;

pub(crate) fn any_key(choices: &mut impl Choices) -> KeyNumber {
    let end = match choices.byte() {
        0..96 => 32,
        96..224 => 512,
        _ => usize::from(KeyNumber::MAX) + 1,
    };
    KeyNumber::try_from(choices.below(end)).expect("a number below 2^16")
}

fn any_value(choices: &mut impl Choices) -> ValueNumber {
    choices.byte().into()
}

/// Key numbers at equal distances, rising, falling or wrapping around.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    start: KeyNumber,
    count: u16,
    stride: u16,
}

impl Run {
    pub(crate) fn any(choices: &mut impl Choices) -> Run {
        let count = match choices.byte() {
            0..128 => choices.below(20),
            128..250 => choices.below(200),
            // Enough for a tree of several levels, whatever the node size.
            _ => choices.below(1500),
        };
        Run {
            start: any_key(choices),
            count: u16::try_from(count).expect("a count below 1500"),
            // Up by one, down by one, up by steps that leave room; else as if drawn at random.
            stride: match choices.byte() % 8 {
                0..3 => 1,
                3 | 4 => u16::MAX,
                5 => 4,
                _ => 40_503,
            },
        }
    }

    /// The numbers, each with that of a value.
    pub(crate) fn numbers(self) -> impl Iterator<Item = (KeyNumber, ValueNumber)> + Clone {
        (0..self.count).map(move |n| {
            let key = self.start.wrapping_add(self.stride.wrapping_mul(n));
            (key, u32::from(n) + 1000)
        })
    }
}

/// From which end to take the next element, again and again: bit 0 says it for the first, a set bit
/// means the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends(u64);

impl Ends {
    pub(crate) fn any(choices: &mut impl Choices) -> Ends {
        Ends(match choices.byte() % 4 {
            0 => u64::MAX,
            1 => 0,
            2 => 0x5555_5555_5555_5555,
            _ => u64::try_from(choices.number()).unwrap_or(u64::MAX),
        })
    }

    /// `true` for the front, without end.
    pub(crate) fn fronts(self) -> impl Iterator<Item = bool> {
        (0..64).cycle().map(move |bit| self.0 >> bit & 1 == 1)
    }
}

/// The two bounds of a range. One that `BTreeMap` refuses is not run.
pub(crate) type Bounds = (Bound<KeyNumber>, Bound<KeyNumber>);

pub(crate) fn any_bound(choices: &mut impl Choices) -> Bound<KeyNumber> {
    match choices.byte() % 5 {
        0 | 1 => Bound::Included(any_key(choices)),
        2 | 3 => Bound::Excluded(any_key(choices)),
        _ => Bound::Unbounded,
    }
}

/// What to do with an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryWay {
    OrInsert,
    OrInsertWith,
    OrInsertWithKey,
    OrDefault,
    AndModify,
    /// `Entry::insert_entry`, then what the way for occupied entries says.
    InsertEntry(OccupiedWay),
    /// `OccupiedEntry` as the way says, `VacantEntry::insert`.
    Match(OccupiedWay),
    /// The vacant one gives back its key.
    IntoKey,
    /// `VacantEntry::insert_entry`, then what the way for occupied entries says.
    InsertVacantEntry(OccupiedWay),
}

/// What to do with an occupied entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OccupiedWay {
    Look,
    GetMut,
    IntoMut,
    Insert,
    Remove,
    RemoveEntry,
}

impl OccupiedWay {
    fn any(choices: &mut impl Choices) -> OccupiedWay {
        match choices.byte() % 6 {
            0 => OccupiedWay::Look,
            1 => OccupiedWay::GetMut,
            2 => OccupiedWay::IntoMut,
            3 => OccupiedWay::Insert,
            4 => OccupiedWay::Remove,
            _ => OccupiedWay::RemoveEntry,
        }
    }
}

impl EntryWay {
    fn any(choices: &mut impl Choices) -> EntryWay {
        match choices.byte() % 12 {
            0 => EntryWay::OrInsert,
            1 => EntryWay::OrInsertWith,
            2 => EntryWay::OrInsertWithKey,
            3 => EntryWay::OrDefault,
            4 => EntryWay::AndModify,
            5 => EntryWay::InsertEntry(OccupiedWay::any(choices)),
            6 => EntryWay::IntoKey,
            7 => EntryWay::InsertVacantEntry(OccupiedWay::any(choices)),
            _ => EntryWay::Match(OccupiedWay::any(choices)),
        }
    }
}

/// One move of a cursor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Next,
    Prev,
    /// Looks to both sides, through a shared cursor, too.
    Peek,
    /// Changes the value on the right or left.
    Change(bool, ValueNumber),
    InsertBefore(KeyNumber, ValueNumber),
    InsertAfter(KeyNumber, ValueNumber),
    RemoveNext,
    RemovePrev,
}

impl Step {
    pub(crate) fn any(choices: &mut impl Choices) -> Step {
        match choices.byte() % 12 {
            0 | 1 => Step::Next,
            2 | 3 => Step::Prev,
            4 => Step::Peek,
            5 => Step::Change(choices.flip(), any_value(choices)),
            6 | 7 => Step::InsertBefore(any_key(choices), any_value(choices)),
            8 | 9 => Step::InsertAfter(any_key(choices), any_value(choices)),
            10 => Step::RemoveNext,
            _ => Step::RemovePrev,
        }
    }
}

/// One step of a program.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Insert(KeyNumber, ValueNumber),
    Remove(KeyNumber),
    RemoveEntry(KeyNumber),
    /// Every way to ask for one key.
    Get(KeyNumber),
    GetMut(KeyNumber, ValueNumber),
    Entry(KeyNumber, EntryWay, ValueNumber),
    /// `first_entry` or `last_entry`.
    EndEntry(bool, OccupiedWay, ValueNumber),
    /// `pop_first` or `pop_last`, some times.
    Pop(bool, u8),
    GetMany(Run, Vec<KeyNumber>),
    InsertMany(Run),
    Extend(Run),
    /// Removes the keys one by one.
    RemoveMany(Run),
    Range(Bounds, Ends),
    RangeMut(Bounds, Ends, ValueNumber),
    /// All borrowing iterators.
    Iterate(Ends),
    /// Iterators' shortcuts: so many skipped at the front and at the back.
    Jump(usize, usize),
    IterateMut(Ends, ValueNumber),
    /// All owning iterators, on copies; some of each are dropped before their end, after so many
    /// elements.
    MoveOut(Ends, usize),
    /// Keeps one entry in so many.
    Retain(u8),
    /// Takes out one entry in so many of a range, but stops after some.
    ExtractIf(Bounds, u8, usize),
    /// `try_insert`.
    TryInsert(KeyNumber, ValueNumber),
    /// Appends a map of these keys, which counts ranks or not.
    Append(Run, bool),
    /// Merges a map of these keys, whose values stay or go.
    Merge(Run, bool),
    /// Keeps the lower or the upper part.
    SplitOff(KeyNumber, bool),
    Clear,
    /// `clone`, or `clone_from` into a map of these keys.
    Clone(Option<Run>),
    Compact,
    /// Takes the map apart and builds it again from entries in order, or from entries in no order
    /// with some twice.
    Rebuild(bool),
    /// A mutable cursor at a lower or an upper bound.
    Cursor(bool, Bound<KeyNumber>, Vec<Step>),
    /// A shared cursor, moved to the right or to the left.
    Walk(bool, Bound<KeyNumber>, Ends),
    Rank(KeyNumber),
    Index(usize),
    Compare(Run),
}

impl Op {
    pub(crate) fn any(choices: &mut impl Choices) -> Op {
        match choices.byte() % 100 {
            0..9 => Op::Insert(any_key(choices), any_value(choices)),
            9 => Op::TryInsert(any_key(choices), any_value(choices)),
            10..18 => Op::Remove(any_key(choices)),
            18 | 19 => Op::RemoveEntry(any_key(choices)),
            20 | 21 => Op::Get(any_key(choices)),
            22 => Op::GetMut(any_key(choices), any_value(choices)),
            23..31 => Op::Entry(any_key(choices), EntryWay::any(choices), any_value(choices)),
            31 | 32 => Op::EndEntry(
                choices.flip(),
                OccupiedWay::any(choices),
                any_value(choices),
            ),
            33 | 34 => Op::Pop(choices.flip(), choices.byte() % 40),
            35..38 => {
                let run = Run::any(choices);
                let others = choices.below(12);
                Op::GetMany(run, (0..others).map(|_| any_key(choices)).collect())
            }
            38..44 => Op::InsertMany(Run::any(choices)),
            44 | 45 => Op::Extend(Run::any(choices)),
            46..54 => Op::RemoveMany(Run::any(choices)),
            54..59 => Op::Range((any_bound(choices), any_bound(choices)), Ends::any(choices)),
            59 | 60 => Op::RangeMut(
                (any_bound(choices), any_bound(choices)),
                Ends::any(choices),
                any_value(choices),
            ),
            61 => Op::Iterate(Ends::any(choices)),
            62 => Op::Jump(choices.below(300), choices.below(300)),
            63 => Op::IterateMut(Ends::any(choices), any_value(choices)),
            64 => Op::MoveOut(Ends::any(choices), choices.below(300)),
            65 | 66 => Op::Retain(choices.byte() % 8),
            67..70 => Op::ExtractIf(
                (any_bound(choices), any_bound(choices)),
                choices.byte() % 8,
                choices.below(100),
            ),
            70 | 71 => Op::Append(Run::any(choices), choices.flip()),
            72 => Op::Merge(Run::any(choices), choices.flip()),
            73..77 => Op::SplitOff(any_key(choices), choices.flip()),
            77 if choices.byte() < 64 => Op::Clear,
            77 | 78 => Op::Clone(None),
            79 => Op::Clone(Some(Run::any(choices))),
            80 | 81 => Op::Compact,
            82..84 => Op::Rebuild(choices.flip()),
            84..92 => {
                let (lower, bound) = (choices.flip(), any_bound(choices));
                let steps = choices.below(30);
                Op::Cursor(
                    lower,
                    bound,
                    (0..steps).map(|_| Step::any(choices)).collect(),
                )
            }
            92 => Op::Walk(choices.flip(), any_bound(choices), Ends::any(choices)),
            93..96 => Op::Rank(any_key(choices)),
            96..98 => Op::Index(choices.below(1000)),
            _ => Op::Compare(Run::any(choices)),
        }
    }
}
