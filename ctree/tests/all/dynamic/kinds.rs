//! The keys and values that programs run on, each made from a number.

use std::cell::Cell;
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::LazyLock;

use ctree::{Head, TotalF64};

/// A type of keys.
pub(crate) trait Key: Clone + Ord + Debug + Hash {
    /// The key of a number. Two numbers may have the same key, and larger numbers smaller keys.
    fn nth(number: u16) -> Self;
}

/// A type of values.
pub(crate) trait Value: Clone + Ord + Debug + Hash + Default {
    /// The value of a number.
    fn numbered(number: u32) -> Self;
}

impl Key for u8 {
    fn nth(number: u16) -> u8 {
        number.to_le_bytes()[0]
    }
}

impl Key for u64 {
    /// Small ones in a row, a few near the largest, and some far apart.
    fn nth(number: u16) -> u64 {
        let wide = u64::from(number);
        match number % 8 {
            0 => u64::MAX - wide,
            1 => wide << 45,
            _ => wide,
        }
    }
}

impl Key for i32 {
    fn nth(number: u16) -> i32 {
        let signed = i32::from(number.cast_signed());
        match number % 8 {
            0 => i32::MIN + i32::from(number),
            1 => i32::MAX - i32::from(number),
            _ => signed,
        }
    }
}

impl Key for char {
    /// On both sides of the gap in the numbers of characters, and at the ends.
    fn nth(number: u16) -> char {
        let code = match number % 8 {
            0 => 0x10_FFFF - u32::from(number),
            1 => u32::from(number % 128),
            _ => 0xD7F0 + u32::from(number % 32) + u32::from(number / 512) * 0x400,
        };
        char::from_u32(code).unwrap_or('\u{FFFD}')
    }
}

impl Key for TotalF64 {
    fn nth(number: u16) -> TotalF64 {
        TotalF64(match number % 16 {
            0 => -0.0,
            1 => 0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::NAN,
            5 => -f64::NAN,
            6 => f64::MIN_POSITIVE / f64::from(number),
            7..12 => f64::from(number) * -0.75,
            _ => f64::from(number) / 3.0,
        })
    }
}

/// Short texts, texts that are the beginning of others, texts that differ only far behind, and
/// texts that are not of letters.
fn text(number: u16) -> String {
    match number % 8 {
        0 => String::from_utf8_lossy(&number.to_be_bytes()).into_owned(),
        1 => "a".repeat(usize::from(number % 61)),
        2 => format!("{}\0", "a".repeat(usize::from(number % 61))),
        3 => format!("/usr/share/documents/by-number/{number:05}"),
        4 => format!("{number:05}"),
        5 => format!("ключ-{number}"),
        6 => format!("/usr/share/{number}"),
        _ => format!("{number:x}"),
    }
}

impl Key for String {
    fn nth(number: u16) -> String {
        text(number)
    }
}

impl Key for &'static str {
    fn nth(number: u16) -> &'static str {
        static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| (0..2048).map(text).collect());
        &TEXTS[usize::from(number) % TEXTS.len()]
    }
}

impl Key for Vec<u8> {
    fn nth(number: u16) -> Vec<u8> {
        let mut bytes = text(number).into_bytes();
        if number.is_multiple_of(32) {
            bytes.insert(0, 0xFF);
        }
        bytes
    }
}

impl Key for (u32, u32) {
    fn nth(number: u16) -> (u32, u32) {
        let wide = u32::from(number);
        match number % 8 {
            0 => (u32::MAX, wide),
            1 => (wide, u32::MAX - wide),
            _ => (wide >> 4, wide & 15),
        }
    }
}

impl Key for (u64, u64) {
    /// Many with the same first part.
    fn nth(number: u16) -> (u64, u64) {
        let wide = u64::from(number);
        match number % 8 {
            0 => (u64::MAX, wide),
            1 => (wide, wide),
            _ => (7, wide << 40),
        }
    }
}

impl Key for Reverse<u64> {
    fn nth(number: u16) -> Reverse<u64> {
        Reverse(u64::nth(number))
    }
}

impl Key for Box<u64> {
    fn nth(number: u16) -> Box<u64> {
        Box::new(u64::nth(number))
    }
}

impl Key for () {
    fn nth(_: u16) {}
}

/// A key of which the tree can know nothing but its order, which is not that of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plain {
    number: u16,
    body: Box<u16>,
}

impl Key for Plain {
    fn nth(number: u16) -> Plain {
        Plain {
            number,
            body: Box::new(number),
        }
    }
}

impl Ord for Plain {
    fn cmp(&self, other: &Plain) -> Ordering {
        assert_eq!((*self.body, *other.body), (self.number, other.number));
        self.number.swap_bytes().cmp(&other.number.swap_bytes())
    }
}

impl PartialOrd for Plain {
    fn partial_cmp(&self, other: &Plain) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A key with a head of its own, which many keys share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Headed(String);

impl Key for Headed {
    fn nth(number: u16) -> Headed {
        Headed(text(number))
    }
}

// SAFETY: the type has no lifetimes.
unsafe impl Head for Headed {
    fn head(&self) -> u64 {
        self.0
            .bytes()
            .chain([0; 2])
            .take(2)
            .fold(0, |head, byte| head << 8 | u64::from(byte))
    }
}

impl Value for () {
    fn numbered(_: u32) {}
}

impl Value for u64 {
    fn numbered(number: u32) -> u64 {
        number.into()
    }
}

impl Value for String {
    fn numbered(number: u32) -> String {
        number.to_string()
    }
}

/// A value so large that a node holds few.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Huge([u8; 4096]);

impl Default for Huge {
    fn default() -> Huge {
        Huge([0; 4096])
    }
}

impl Value for Huge {
    fn numbered(number: u32) -> Huge {
        Huge([number.to_le_bytes()[0]; 4096])
    }
}

thread_local! {
    /// Values of [`Alive`] that this thread has made and not dropped.
    static ALIVE: Cell<usize> = const { Cell::new(0) };
}

/// A value that is counted while it lives.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Alive<T>(T);

pub(crate) type Counted = Alive<Box<u32>>;

/// A counted value without size.
pub(crate) type Weightless = Alive<()>;

impl<T> Alive<T> {
    fn new(value: T) -> Alive<T> {
        ALIVE.set(ALIVE.get() + 1);
        Alive(value)
    }

    /// How many values of this thread are not yet dropped.
    pub(crate) fn alive() -> usize {
        ALIVE.get()
    }
}

impl Value for Counted {
    fn numbered(number: u32) -> Counted {
        Alive::new(Box::new(number))
    }
}

impl Value for Weightless {
    fn numbered(_: u32) -> Weightless {
        Alive::new(())
    }
}

impl<T: Default> Default for Alive<T> {
    fn default() -> Alive<T> {
        Alive::new(T::default())
    }
}

impl<T: Clone> Clone for Alive<T> {
    fn clone(&self) -> Alive<T> {
        Alive::new(self.0.clone())
    }
}

impl<T> Drop for Alive<T> {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}
