//! Names of types as demanglers and debug information write them.

use crate::profile::Frame;
use crate::symbols::generics::{DEFAULTS, bracket, normal, split};

/// A type's path and its arguments, without allocators and hashers that are the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) path: String,
    pub(super) args: Vec<String>,
}

/// What names in older symbols have for arguments.
const GENERICS: [&str; 5] = ["T", "K", "V", "A", "_"];

/// The type `alloc::vec::Vec<u32>` as its path and arguments; `None` for what is no path.
pub(super) fn parse(text: &str) -> Option<Name> {
    let (path, args) = match text.find('<') {
        Some(0) => return None,
        Some(at) => {
            let (args, rest) = bracket(&text[at..])?;
            (
                &text[..at],
                if rest.is_empty() { args } else { return None },
            )
        }
        None => (text, ""),
    };
    let is_path = path
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    let args = split(args)
        .into_iter()
        .filter(|arg| !DEFAULTS.contains(arg));
    // Older symbol names say `Vec<T>` whatever `T` is.
    let args: Vec<String> = args.map(normal).collect();
    let generic = |arg: &String| {
        let mut words = arg.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| GENERICS.contains(&word))
    };
    let known = !args.iter().any(generic);
    (is_path && known).then(|| Name {
        path: path.to_owned(),
        args,
    })
}

/// The type whose function this is: `<T>::function`, `<T as Trait>::function`, or in older symbols
/// `module::<impl Trait for T>::function`.
pub(super) fn of_self(function: &str) -> Option<Name> {
    let start = match function.starts_with('<') {
        true => 0,
        false => function.find("<impl ")?,
    };
    let (inner, _) = bracket(&function[start..])?;
    let (mut depth, mut end) = (0, inner.len());
    for (at, c) in inner.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ' ' if depth == 0 && inner[at..].starts_with(" for ") => {
                return parse(&inner[at + " for ".len()..]);
            }
            ' ' if depth == 0 && inner[at..].starts_with(" as ") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    parse(&inner[..end])
}

/// The type whose function this is in C++, `std::vector<T, std::allocator<T> >::function`, and in
/// older symbols of Rust.
pub(super) fn of_path(function: &str) -> Option<Name> {
    let Some(start) = function.find('<') else {
        return parse(function.rsplit_once("::")?.0);
    };
    let (_, rest) = bracket(&function[start..])?;
    (start > 0 && rest.starts_with("::"))
        .then(|| parse(&function[..function.len() - rest.len()]))?
}

/// With line tables only, inlined functions are named `push<u32, alloc::alloc::Global>`: their
/// file tells the type, whose arguments come first.
pub(super) fn by_file(frame: &Frame) -> Option<Name> {
    const TYPES: [(&str, &str, usize); 9] = [
        ("/alloc/src/raw_vec/mod.rs", "alloc::raw_vec::RawVec", 1),
        ("/alloc/src/vec/mod.rs", "alloc::vec::Vec", 1),
        ("/alloc/src/boxed.rs", "alloc::boxed::Box", 1),
        ("/alloc/src/rc.rs", "alloc::rc::Rc", 1),
        ("/alloc/src/sync.rs", "alloc::sync::Arc", 1),
        ("/alloc/src/string.rs", "alloc::string::String", 0),
        (
            "/vec_deque/mod.rs",
            "alloc::collections::vec_deque::VecDeque",
            1,
        ),
        (
            "/binary_heap/mod.rs",
            "alloc::collections::binary_heap::BinaryHeap",
            1,
        ),
        ("/src/raw/mod.rs", "hashbrown::raw::RawTable", 1),
    ];
    let function = &*frame.function;
    let (name, rest) = function.split_at(function.find('<').unwrap_or(function.len()));
    let of_table = !frame.file.ends_with("/src/raw/mod.rs") || frame.file.contains("/hashbrown-");
    if name.is_empty() || name.contains("::") || !of_table {
        return None;
    }
    let (_, path, count) = TYPES.iter().find(|(file, ..)| frame.file.ends_with(file))?;
    let counted = matches!(
        *path,
        "alloc::boxed::Box" | "alloc::rc::Rc" | "alloc::sync::Arc"
    );
    if counted && !name.starts_with("new") {
        return None;
    }
    let args = if rest.is_empty() {
        ""
    } else {
        bracket(rest)?.0
    };
    let mut args: Vec<String> = split(args)
        .into_iter()
        .filter(|arg| !DEFAULTS.contains(arg))
        .map(normal)
        .collect();
    args.truncate(*count);
    (args.len() == *count).then(|| Name {
        path: (*path).to_owned(),
        args,
    })
}

/// `T` of `[T]`.
pub(super) fn slice_element(text: &str) -> Option<String> {
    let (inner, rest) = bracket(text.strip_prefix('[').map(|_| text)?)?;
    (rest.is_empty() && !inner.contains(';')).then(|| inner.to_owned())
}

/// The members of `(A, B)`.
pub(super) fn tuple(text: &str) -> Option<Vec<String>> {
    let (inner, rest) = bracket(text.strip_prefix('(').map(|_| text)?)?;
    rest.is_empty()
        .then(|| split(inner).into_iter().map(str::to_owned).collect())
}

/// Bytes of a type of the language itself, and of pointers to sized ones.
pub(super) fn size_of_primitive(name: &str) -> Option<u64> {
    Some(match name {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" | "char" => 4,
        "u64" | "i64" | "f64" | "usize" | "isize" => 8,
        "u128" | "i128" | "&str" | "&[u8]" => 16,
        _ => return None,
    })
}

/// The name as its user writes it: of each path the last segment.
pub(crate) fn shorten(name: &str) -> String {
    let mut short = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            short.push(c);
            rest = &rest[c.len_utf8()..];
        } else if let Some(next) = after
            .strip_prefix("::")
            .filter(|next| next.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        {
            rest = next;
        } else {
            short.push_str(word);
            rest = after;
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, args: &[&str]) -> Option<Name> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Some(Name {
            path: path.to_owned(),
            args,
        })
    }

    #[test]
    fn functions_tell_their_type() {
        let grow = of_self("<alloc::raw_vec::RawVec<(u32, fn(u8) -> u16)>>::grow_one");
        assert_eq!(
            grow,
            name("alloc::raw_vec::RawVec", &["(u32, fn(u8) -> u16)"])
        );
        let clone = of_self("<alloc::vec::Vec<f32> as core::clone::Clone>::clone");
        assert_eq!(clone, name("alloc::vec::Vec", &["f32"]));
        let new = of_self("<alloc::boxed::Box<a::Node<u8>, &alloc::alloc::Global>>::new_in");
        assert_eq!(
            new,
            name(
                "alloc::boxed::Box",
                &["a::Node<u8>", "&alloc::alloc::Global"]
            )
        );
        let owned = of_self("alloc::str::<impl alloc::borrow::ToOwned for str>::to_owned");
        assert_eq!(owned, name("str", &[]));
        for other in [
            "alloc::vec::from_elem::<f32>",
            "<[u8]>::to_vec",
            "<alloc::vec::Vec<T,A>>::f",
        ] {
            assert_eq!(of_self(other), None, "{other}");
        }
    }

    #[test]
    fn paths_tell_the_type_of_their_function() {
        let function = "std::vector<a::B, std::allocator<a::B> >::push_back(a::B&&)";
        assert_eq!(
            of_path(function),
            name("std::vector", &["a::B", "std::allocator<a::B>"])
        );
        assert_eq!(of_path("std::max<int>(int, int)"), None);
        assert_eq!(
            of_path("alloc::string::String::push"),
            name("alloc::string::String", &[])
        );
        assert_eq!(of_path("main"), None);
    }

    #[test]
    fn files_tell_the_type_of_inlined_functions() {
        let frame = |function: &str, file: &str| {
            let file = format!("/rustc/1/library/{file}");
            by_file(&Frame {
                function: function.into(),
                file,
                ..Frame::default()
            })
        };
        let push = frame("push<u32, alloc::alloc::Global>", "alloc/src/vec/mod.rs");
        assert_eq!(push, name("alloc::vec::Vec", &["u32"]));
        let text = frame("push_str", "alloc/src/string.rs");
        assert_eq!(text, name("alloc::string::String", &[]));
        assert_eq!(
            frame("new<a::Node>", "alloc/src/rc.rs"),
            name("alloc::rc::Rc", &["a::Node"])
        );
        assert_eq!(
            frame("grow_one<alloc::alloc::Global>", "alloc/src/raw_vec/mod.rs"),
            None
        );
        assert_eq!(
            frame(
                "<alloc::raw_vec::RawVecInner>::grow",
                "alloc/src/raw_vec/mod.rs"
            ),
            None
        );
        assert_eq!(frame("reserve<u8>", "other/src/raw/mod.rs"), None);
    }

    #[test]
    fn names_are_shortened() {
        for (whole, short) in [
            ("alloc::vec::Vec<a::b::Pair<u8, c::D>>", "Vec<Pair<u8, D>>"),
            (
                "alloc::boxed::Box<dyn a::Draw + core::marker::Send>",
                "Box<dyn Draw + Send>",
            ),
            ("a::main::{closure#0}", "main::{closure#0}"),
            ("&[u8]", "&[u8]"),
        ] {
            assert_eq!(shorten(whole), short);
        }
        assert_eq!(normal("Box<a::B, alloc::alloc::Global>"), "Box<a::B>");
        assert_eq!(
            tuple("(a::B<(u8, u8)>, ())"),
            Some(vec!["a::B<(u8, u8)>".into(), "()".into()])
        );
        assert_eq!(slice_element("[a::B]"), Some("a::B".into()));
        assert_eq!(slice_element("[a::B; 3]"), None);
    }
}
