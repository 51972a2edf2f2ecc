//! Generic arguments in names of types and functions.

/// Arguments that nobody writes.
pub(crate) const DEFAULTS: [&str; 3] = [
    "alloc::alloc::Global",
    "std::hash::random::RandomState",
    "hashbrown::DefaultHashBuilder",
];

/// The parts of `text` between the commas that are in no bracket.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // Not in `->`.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    let last = text[start..].trim();
    parts.extend((!last.is_empty()).then_some(last));
    parts
}

/// What is in the bracket that `text` begins with, and what follows it.
pub(crate) fn bracket(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(1..at)?, &text[at + c.len_utf8()..]));
        }
        before = c;
    }
    None
}

/// The name without default arguments, as two writers of the same type would agree on.
pub(crate) fn normal(text: &str) -> String {
    let mut out = text.to_owned();
    for default in DEFAULTS {
        out = out
            .replace(&format!(", {default}"), "")
            .replace(&format!(",{default}"), "");
    }
    out
}
