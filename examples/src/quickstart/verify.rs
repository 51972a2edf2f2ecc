//! Answers of the structures against each other and against a plain search of the text.
//!
//! A search tree that is fast and wrong is worth nothing, so before anything is timed a few hundred
//! questions are put to all structures, each "where does this phrase occur next, at or after this
//! byte?" with a phrase from one place of the text and a start from another, so that answers lie
//! before, at and behind what was asked for, or do not exist. The same questions go to `str::find`,
//! which knows nothing of trees.

use crate::rng::Rng;

use super::error::UserError;
use super::keys::PositionKeys;
use super::rows::Structures;
use super::text::Text;

/// Questions put to every structure.
const QUESTIONS: usize = 2_000;

/// Questions that are also answered by reading the text; at least 20, and fewer than this in long
/// texts, which take long to read.
const SCANS_MAX: usize = 200;

/// Bytes of text that all scans together read at most, if each reads the whole text.
const SCAN_BYTES: usize = 2 << 30;

/// How much was checked; all of it agreed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    /// Questions that all structures answered alike.
    pub(crate) compared: usize,
    /// Questions among them that a plain search of the text answered in the same way.
    pub(crate) scanned: usize,
    /// Questions among `compared` whose phrase does not occur again.
    pub(crate) absent: usize,
}

/// Compares; an error names the first question that was answered in two ways.
pub(crate) fn verify(
    structures: &Structures,
    positions: &PositionKeys,
    text: &Text,
    seed: u64,
) -> Result<Checks, UserError> {
    let format = positions.format();
    let keys = positions.keys();
    let mut rng = Rng::new(!seed);
    let scans = (SCAN_BYTES / text.as_str().len()).clamp(20, SCANS_MAX);
    let mut checks = Checks {
        compared: 0,
        scanned: 0,
        absent: 0,
    };
    for question in 0..QUESTIONS {
        let place = format.position(keys[rng.below(keys.len())]);
        // Every fourth phrase is asked for from its own place on, as the timed lookups do; the
        // others from anywhere.
        let from = match question % 4 {
            0 => place,
            _ => format.position(keys[rng.below(keys.len())]),
        };
        let query = format.query(text, place, from);
        let mut answers = structures
            .iter()
            .map(|structure| structure.next_occurrence(query));
        let answer = answers.next().flatten();
        if answers.any(|other| other != answer) {
            return Err(UserError::wrong_answers(&format!(
                "the phrase at byte {place}, asked for from byte {from} on,"
            )));
        }
        checks.compared += 1;
        checks.absent += usize::from(answer.is_none());
        if question < scans {
            if scan(text, positions, place, from) != answer {
                return Err(UserError::wrong_answers(&format!(
                    "a plain search for the phrase at byte {place} from byte {from} on"
                )));
            }
            checks.scanned += 1;
        }
    }
    Ok(checks)
}

/// The first sampled position at or after byte `from` at which the phrase of byte `place` occurs,
/// by reading the text.
///
/// A phrase is as long as a key holds; one that is cut short by the end of the text occurs there
/// only.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a text is at most 1 GiB long"
)]
fn scan(text: &Text, positions: &PositionKeys, place: u32, from: u32) -> Option<u32> {
    let content = text.as_str();
    let suffix = &content[place as usize..];
    let Some((last, character)) = suffix
        .char_indices()
        .nth(positions.format().phrase_characters() - 1)
    else {
        return (from <= place).then_some(place);
    };
    let phrase = &suffix[..last + character.len_utf8()];
    let mut start = from as usize;
    while let Some(found) = content[start..].find(phrase) {
        let position = start + found;
        if positions.contains(position as u32) {
            return Some(position as u32);
        }
        // On by one character: occurrences may overlap.
        start = position + content[position..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::keys::PositionKeys;
    use super::super::progress::Progress;
    use super::super::rows::Structures;
    use super::super::text::Text;
    use super::{scan, verify};
    use ccmodel::Machine;
    use quickcheck::quickcheck;

    quickcheck! {
        fn structures_agree_with_a_plain_search(content: String, share: u8, seed: u64) -> bool {
            // A small alphabet makes phrases repeat.
            let content: String = content.chars().map(|c| char::from(b'a' + (c as u32 % 3) as u8)).chain("ab".chars()).collect();
            let text = Text::of(&content);
            let nodes = (content.len() as u64 * u64::from(share) / 255).max(1);
            let positions = PositionKeys::sample(&text, Some(nodes), seed).unwrap();
            let structures = Structures::build(&positions, Machine::this(), &Progress::new(false, 1)).unwrap();
            verify(&structures, &positions, &text, seed).is_ok()
        }
    }

    #[test]
    fn a_scan_finds_overlapping_and_final_occurrences() {
        let text = Text::of(&"a".repeat(80));
        let positions = PositionKeys::sample(&text, None, 1).unwrap();
        let phrase_characters = u32::try_from(positions.format().phrase_characters()).unwrap();
        assert!(phrase_characters < 80);
        assert_eq!(scan(&text, &positions, 0, 1), Some(1));
        assert_eq!(scan(&text, &positions, 5, 0), Some(0));
        assert_eq!(
            scan(&text, &positions, 0, 80 - phrase_characters),
            Some(80 - phrase_characters)
        );
        assert_eq!(scan(&text, &positions, 0, 80 - phrase_characters + 1), None);
        assert_eq!(scan(&text, &positions, 79, 3), Some(79));
        assert_eq!(scan(&text, &positions, 78, 79), None);
    }
}
