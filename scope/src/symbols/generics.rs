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
    // Most names are of no such type, and there are millions.
    if !text.contains(',') {
        return out;
    }
    for default in DEFAULTS {
        if out.contains(default) {
            out = out
                .replace(&format!(", {default}"), "")
                .replace(&format!(",{default}"), "");
        }
    }
    out
}

/// The name without what is around it and without arguments: `Vec` of `alloc::vec::Vec<u8>`.
pub(crate) fn last_part(name: &str) -> &str {
    let bytes = name.as_bytes();
    let (mut depth, mut end) = (0, name.len());
    for at in (0..name.len()).rev() {
        match bytes[at] {
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth += 1,
            b'<' | b'(' | b'[' | b'{' => {
                depth -= 1;
                end = if depth == 0 { at } else { end };
            }
            b':' if depth == 0 => return name.get(at + 1..end).unwrap_or_default(),
            _ => {}
        }
    }
    name.get(..end).unwrap_or_default()
}

/// `A` and `B` of `function<A, B>`.
pub(crate) fn arguments(function: &str) -> Vec<String> {
    let inner = { function.find('<') }.and_then(|at| bracket(&function[at..]));
    let inner = inner.map_or("", |(inner, _)| inner);
    split(inner).into_iter().map(str::to_owned).collect()
}

/// The function `Vec<T,A>::push` with arguments for `T` and `A`, without default ones.
pub(crate) fn with_arguments(function: &str, arguments: &[(String, String)]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut whole = String::new();
    for word in function.split_inclusive(|c| !is_word(c)) {
        let name = word.trim_end_matches(|c| !is_word(c));
        // What follows `::` is a name.
        let argument =
            { arguments.iter() }.find(|(parameter, _)| parameter == name && !whole.ends_with(':'));
        whole.push_str(argument.map_or(name, |(_, argument)| argument));
        whole.push_str(&word[name.len()..]);
    }
    normal(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_parts_do_not_depend_on_what_is_around() {
        for (name, last) in [
            ("Vec<a::B, alloc::alloc::Global>", "Vec"),
            ("{closure_env#0}<a::B>", ""),
            ("dyn a::Any", "Any"),
            ("Option<fn(a::B) -> a::C>", "Option"),
            ("Node", "Node"),
        ] {
            assert_eq!(last_part(name), last);
            assert_eq!(last_part(&format!("a::{{impl#0}}::{name}")), last);
            assert_eq!(last_part(&normal(name)), last);
        }
    }

    #[test]
    fn older_symbols_get_arguments() {
        let arguments = arguments("push<a::B<u8, u8>, alloc::alloc::Global>");
        assert_eq!(arguments, ["a::B<u8, u8>", "alloc::alloc::Global"]);
        let pairs: Vec<_> = ["T", "A"]
            .map(str::to_owned)
            .into_iter()
            .zip(arguments)
            .collect();
        for (function, whole) in [
            (
                "alloc::vec::Vec<T,A>::push",
                "alloc::vec::Vec<a::B<u8, u8>>::push",
            ),
            ("<[T] as T::A>::A", "<[a::B<u8, u8>] as a::B<u8, u8>::A>::A"),
        ] {
            assert_eq!(with_arguments(function, &pairs), whole);
        }
    }
}
