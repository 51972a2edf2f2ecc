//! A good file with a few bytes changed, which a fuzzer would take long to find.

/// Each four bytes are an edit: what to do, two for the place, and what to put there. What is no
/// text any more has replacement characters.
pub fn edited(whole: &str, edits: &[u8]) -> String {
    let mut text = whole.as_bytes().to_vec();
    for edit in edits.chunks_exact(4) {
        if text.is_empty() {
            break;
        }
        let at = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % text.len();
        match edit[0] % 4 {
            0 => text[at] = edit[3],
            1 => text.insert(at, edit[3]),
            2 => drop(text.remove(at)),
            // Most of what matters is digits.
            _ => match text[at..].iter().position(u8::is_ascii_digit) {
                Some(digit) => text[at + digit] = b'0' + edit[3] % 10,
                None => text.truncate(at),
            },
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
