//! The tool's folder for this run, where events go, and paths below it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most bytes of the folder's path.
const LONGEST: usize = 100;
/// The folder, with its 0.
static FOLDER: [AtomicU64; 24] = [const { AtomicU64::new(0) }; 24];

/// Sets the folder; false if it is too long, or nothing.
pub(crate) fn set(folder: &[u8]) -> bool {
    if folder.is_empty() || folder.len() > LONGEST {
        return false;
    }
    for (at, part) in folder.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        FOLDER[at].store(u64::from_le_bytes(word), Relaxed);
    }
    true
}

/// A path below the folder.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    bytes: [u8; 192],
    len: usize,
}

impl Path {
    /// The folder with a slash.
    pub(crate) fn in_folder() -> Path {
        let mut path = Path {
            bytes: [0; 192],
            len: 0,
        };
        for (at, word) in FOLDER.iter().enumerate() {
            path.bytes[at * 8..at * 8 + 8].copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        path.len = path.bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        path.text(b"/");
        path
    }

    /// Adds text; what has no room is left out.
    pub(crate) fn text(&mut self, text: &[u8]) {
        for &byte in text {
            if self.len + 1 < self.bytes.len() {
                self.bytes[self.len] = byte;
                self.len += 1;
                self.bytes[self.len] = 0;
            }
        }
    }

    /// Adds a decimal number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[at..]);
    }

    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// For the kernel.
    pub(crate) fn pointer(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }

    /// Its bytes for the kernel's address of a socket, with a 0.
    pub(crate) fn for_socket(&self) -> [u8; 108] {
        let mut bytes = [0; 108];
        let len = self.len.min(bytes.len() - 1);
        bytes[..len].copy_from_slice(&self.bytes[..len]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_where_it_has_no_room() {
        let mut path = Path::in_folder();
        assert_eq!(path.as_bytes(), b"/");
        path.number(0);
        path.number(u64::MAX);
        assert_eq!(path.as_bytes(), format!("/0{}", u64::MAX).as_bytes());
        path.text(&[b'x'; 300]);
        assert_eq!((path.as_bytes().len(), path.bytes[191]), (191, 0));
    }
}
