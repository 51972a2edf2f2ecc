//! One method or implemented trait, and the text form of a list of them.

use std::fmt::Write;

/// The version of the standard library that the list is of.
pub(super) const VERSION: &str = "1.95.0";

/// A method or an implemented trait of the standard library.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// `map` or `set`.
    pub(super) module: String,
    /// The type that has it, without parameters.
    pub(super) owner: String,
    /// The version that it is stable since.
    pub(super) since: String,
    /// The header of the `impl` block, from `impl` to the brace.
    pub(super) header: String,
    /// A method's signature without `pub`, from `const` or `fn` on; of a trait, its associated
    /// types as `Name = Type`, separated by commas.
    pub(super) body: String,
}

impl Item {
    pub(super) fn is_method(&self) -> bool {
        self.body.contains("fn ")
    }

    /// The name of a method.
    pub(super) fn method(&self) -> Option<&str> {
        let after = self.body.split_once("fn ")?.1;
        after.split(['(', '<']).next()
    }
}

/// The text form: a line for each item, with its parts separated by bars.
pub(super) fn write(items: &[Item]) -> String {
    let mut text = format!(
        "# Stable methods and traits of Rust {VERSION}: module | type | since | impl | method, or \
         associated types. Made by `std_surface`.\n",
    );
    for item in items {
        let Item {
            module,
            owner,
            since,
            header,
            body,
        } = item;
        let line = format!("{module} | {owner} | {since} | {header} | {body}");
        writeln!(text, "{}", line.trim_end()).expect("writing to a string");
    }
    text
}

pub(super) fn parse(text: &str) -> Vec<Item> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut parts = line.splitn(5, '|').map(|part| part.trim().to_owned());
            let mut part = || parts.next().unwrap_or_else(|| panic!("too short: {line}"));
            Item {
                module: part(),
                owner: part(),
                since: part(),
                header: part(),
                body: part(),
            }
        })
        .collect()
}

/// Tokens as one would write them.
pub(super) fn tidy(tokens: &impl ToString) -> String {
    const TIDIER: [(&str, &str); 14] = [
        (" :: ", "::"),
        ("& ", "&"),
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" , ", ", "),
        (" ,", ","),
        (" ;", ";"),
        (" : ", ": "),
        (" :", ":"),
        ("? ", "?"),
        ("FnMut (", "FnMut("),
        ("FnOnce (", "FnOnce("),
    ];
    TIDIER.iter().fold(tokens.to_string(), |text, (from, to)| {
        text.replace(from, to)
    })
}
