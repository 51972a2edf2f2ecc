//! Text positions as ordered `u64` keys, and the sample of them that becomes nodes.
//!
//! A key holds the `G` characters that follow a position, packed so that integer order is text
//! order, and the position itself:
//!
//! ```text
//!  63                                                   0
//! +------+------+-- ... --+------+-----------------------+
//! | c[0] | c[1] |         |c[G-1]|   byte position p     |
//! +------+------+-- ... --+------+-----------------------+
//!   phrase: G characters            position_bits
//! ```
//!
//! A character is its rank among the distinct characters of the text, from 1; 0 stands behind the
//! end of the text, so a suffix that ends sorts before one that goes on. `G` is as many as fit: 7
//! for the embedded names, where 6 bits a character and 22 bits a position are needed.
//!
//! Keys are unique by their position, however often a phrase occurs, and "the next occurrence of
//! this phrase at or after `p`" is the lower bound of one integer.

use crate::rng::Rng;

use super::error::UserError;
use super::text::Text;

/// Nodes when nothing else is asked for and the text has as many positions: 48 MiB of nodes,
/// several times what a last-level cache gives.
const NODES_DEFAULT: usize = 1 << 21;

/// Where in a key the phrase ends and the position begins: all that an answer needs of the format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySplit {
    position_bits: u32,
}

impl KeySplit {
    /// The position inside `key`.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positions take at most 30 bits"
    )]
    pub(crate) fn position(self, key: u64) -> u32 {
        (key & ((1 << self.position_bits) - 1)) as u32
    }

    /// Whether two keys hold the same phrase.
    #[inline]
    pub(crate) fn same_phrase(self, a: u64, b: u64) -> bool {
        (a ^ b) >> self.position_bits == 0
    }
}

/// How characters and positions share the 64 bits of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyFormat {
    /// The distinct characters of the text, ascending; the rank of a character is its index plus 1.
    alphabet: Vec<char>,
    /// Ranks of the ASCII characters, looked up without a search; 0 where the text has none.
    ascii_ranks: [u8; 128],
    rank_bits: u32,
    split: KeySplit,
    /// `G`: characters in a phrase.
    phrase_characters: u32,
}

impl KeyFormat {
    /// The format for `text`, which is not empty and no longer than 1 GiB.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a rank among 128 characters fits a byte"
    )]
    pub(crate) fn of(text: &Text) -> Self {
        let alphabet = distinct_characters(text.as_str());
        let mut ascii_ranks = [0; 128];
        for (index, &character) in alphabet
            .iter()
            .enumerate()
            .take_while(|(_, character)| character.is_ascii())
        {
            ascii_ranks[character as usize] = index as u8 + 1;
        }
        let rank_bits = bits_for(alphabet.len());
        let position_bits = bits_for(text.as_str().len() - 1);
        // At most 30 + 21 bits for a position and a character, so at least one character fits.
        let phrase_characters = (u64::BITS - position_bits) / rank_bits;
        KeyFormat {
            alphabet,
            ascii_ranks,
            rank_bits,
            split: KeySplit { position_bits },
            phrase_characters,
        }
    }

    /// The key of the suffix that starts at byte `position` of `text`, which must be the start of a
    /// character.
    pub(crate) fn key(&self, text: &Text, position: usize) -> u64 {
        let suffix = text.as_str()[position..]
            .chars()
            .map(|character| self.rank(character));
        let padded = suffix
            .chain(std::iter::repeat(0))
            .take(self.phrase_characters as usize);
        let phrase = padded.fold(0, |phrase, rank| phrase << self.rank_bits | rank);
        phrase << self.split.position_bits | position as u64
    }

    /// The key that asks for the phrase at byte `place` of `text`, at byte `from` or later.
    pub(crate) fn query(&self, text: &Text, place: u32, from: u32) -> u64 {
        let key = self.key(text, place as usize);
        key >> self.split.position_bits << self.split.position_bits | u64::from(from)
    }

    /// The position inside `key`.
    pub(crate) fn position(&self, key: u64) -> u32 {
        self.split.position(key)
    }

    /// How keys of this format are split.
    pub(crate) fn split(&self) -> KeySplit {
        self.split
    }

    /// Characters in a phrase.
    pub(crate) fn phrase_characters(&self) -> usize {
        self.phrase_characters as usize
    }

    fn rank(&self, character: char) -> u64 {
        match self.ascii_ranks.get(character as usize) {
            Some(&rank) => u64::from(rank),
            None => self
                .alphabet
                .binary_search(&character)
                .map_or(0, |index| index as u64 + 1),
        }
    }
}

/// The distinct characters of `text`, ascending. Marks them in a table of all characters, 1 MB
/// whatever the length of the text.
fn distinct_characters(text: &str) -> Vec<char> {
    let mut seen = vec![false; char::MAX as usize + 1];
    for character in text.chars() {
        seen[character as usize] = true;
    }
    ('\0'..=char::MAX)
        .filter(|&character| seen[character as usize])
        .collect()
}

/// Bits that hold every number up to `largest`, at least one.
fn bits_for(largest: usize) -> u32 {
    (usize::BITS - largest.leading_zeros()).max(1)
}

/// The sampled positions of a text as keys in random order.
#[derive(Debug)]
pub(crate) struct PositionKeys {
    format: KeyFormat,
    keys: Vec<u64>,
    /// The sampled positions, ascending.
    positions: Vec<u32>,
    total_positions: usize,
}

impl PositionKeys {
    /// Samples `nodes` positions of `text` without replacement, each set of positions equally
    /// likely, and puts their keys into random order: a tree that does not balance itself
    /// degenerates to a list on sorted keys, and to long runs on a text's repetitions.
    pub(crate) fn sample(text: &Text, nodes: Option<u64>, seed: u64) -> Result<Self, UserError> {
        let total = text.as_str().chars().count();
        let wanted = match nodes {
            None => NODES_DEFAULT.min(total),
            Some(nodes) => usize::try_from(nodes)
                .ok()
                .filter(|&nodes| nodes <= total)
                .ok_or_else(|| {
                    UserError::new(format!(
                        "--nodes {nodes}: the text has only {total} positions"
                    ))
                })?,
        };
        let format = KeyFormat::of(text);
        let mut rng = Rng::new(seed);
        let mut keys = Vec::with_capacity(wanted);
        let mut positions = Vec::with_capacity(wanted);
        // Selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S): each position is taken with
        // probability (still wanted) / (still to come).
        for (index, (position, _)) in text.as_str().char_indices().enumerate() {
            if rng.below(total - index) < wanted - keys.len() {
                let key = format.key(text, position);
                keys.push(key);
                positions.push(format.position(key));
            }
        }
        rng.shuffle(&mut keys);
        Ok(PositionKeys {
            format,
            keys,
            positions,
            total_positions: total,
        })
    }

    pub(crate) fn format(&self) -> &KeyFormat {
        &self.format
    }

    /// The keys in order of insertion; never empty.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Positions that the text has, sampled or not.
    pub(crate) fn total_positions(&self) -> usize {
        self.total_positions
    }

    /// Whether byte `position` is among the sampled ones.
    pub(crate) fn contains(&self, position: u32) -> bool {
        self.positions.binary_search(&position).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::Text;
    use super::{KeyFormat, PositionKeys};
    use quickcheck::quickcheck;

    quickcheck! {
        fn integer_order_is_text_order(content: String) -> bool {
            let content = format!("{content}ab");
            let text = Text::of(&content);
            let format = KeyFormat::of(&text);
            let phrase = |position: usize| content[position..].chars().take(format.phrase_characters()).collect::<String>();
            let mut by_key: Vec<usize> = content.char_indices().map(|(position, _)| position).collect();
            let mut by_text = by_key.clone();
            by_key.sort_by_key(|&position| format.key(&text, position));
            by_text.sort_by_key(|&position| (phrase(position), position));
            by_key == by_text
        }

        fn keys_keep_their_position_and_phrase(content: String) -> bool {
            let text = Text::of(&format!("{content}ab"));
            let format = KeyFormat::of(&text);
            let start = |position| text.as_str()[position..].chars().take(format.phrase_characters()).collect::<Vec<_>>();
            text.as_str().char_indices().all(|(position, _)| {
                let key = format.key(&text, position);
                let first = format.key(&text, 0);
                format.position(key) as usize == position && format.split().same_phrase(key, first) == (start(position) == start(0))
            })
        }
    }

    #[test]
    fn the_sample_is_exact_unique_and_seeded() {
        let text = Text::of(&"to be or not to be ".repeat(20));
        for wanted in [1, 7, 379, 380] {
            let sample = PositionKeys::sample(&text, Some(wanted), 3).unwrap();
            let mut keys = sample.keys().to_vec();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len() as u64, wanted);
            assert!(
                keys.iter()
                    .all(|&key| sample.contains(sample.format().position(key)))
            );
            assert_eq!(
                PositionKeys::sample(&text, Some(wanted), 3).unwrap().keys(),
                sample.keys()
            );
        }
        assert_eq!(
            PositionKeys::sample(&text, None, 1).unwrap().keys().len(),
            380
        );
        assert_ne!(
            PositionKeys::sample(&text, None, 1).unwrap().keys(),
            PositionKeys::sample(&text, None, 2).unwrap().keys()
        );
        assert!(
            PositionKeys::sample(&text, Some(381), 3)
                .unwrap_err()
                .to_string()
                .contains("only 380 positions")
        );
        assert!(PositionKeys::sample(&text, Some(u64::MAX), 3).is_err());
    }

    #[test]
    fn tiny_and_odd_texts() {
        for content in ["ab", "aa", "éé", "a\u{10ffff}", &"x".repeat(1000)] {
            let text = Text::of(content);
            let sample = PositionKeys::sample(&text, None, 1).unwrap();
            assert_eq!(sample.keys().len(), sample.total_positions());
            assert!(sample.format().phrase_characters() >= 1);
        }
    }
}
