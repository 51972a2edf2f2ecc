//! The page for users.

use std::fmt::Write;

use super::item::Item;

/// `docs/ctree-std.md`.
pub(super) fn page(items: &[Item]) -> String {
    let methods = items.iter().filter(|item| item.is_method()).count();
    let mut text = format!(
        "# `ctree` compared with the standard library

`CTreeMap` and `CTreeSet`, their entries and their iterators have every stable method and trait of
Rust {version}'s `BTreeMap` and `BTreeSet`: {methods} methods and {traits} implemented traits, with
the same signatures. `tests/all/std_surface` makes this page from the standard library's source, and
with it a module that calls each method with std's signature and requires each trait under std's
bounds, so that it compiles only if all of them match:

```text
cargo test -p tests --test all std_surface
```

Random programs in `ctree/tests/all/dynamic` compare what the methods do, and the auto traits and
variance of all types. For the standard library's `A: Allocator`, read the trait of
`allocator-api2`. The crate's documentation says what `ctree` has beyond this list:
`cargo doc -p cctree --open`.
",
        version = super::item::VERSION,
        traits = items.len() - methods,
    );
    for (module, collection) in [("map", "CTreeMap"), ("set", "CTreeSet")] {
        let of_module: Vec<&Item> = items.iter().filter(|item| item.module == module).collect();
        let mut owners: Vec<&str> = Vec::new();
        for item in &of_module {
            if !owners.contains(&item.owner.as_str()) {
                owners.push(&item.owner);
            }
        }
        // The collection itself first.
        owners.sort_by_key(|owner| !owner.starts_with("BTree"));
        for owner in owners {
            let ours = if owner.starts_with("BTree") {
                format!("ctree::{collection}")
            } else {
                format!("ctree::{module}::{owner}")
            };
            write!(text, "\n## `{ours}`\n").expect("writing to a string");
            let of_owner = of_module.iter().filter(|item| item.owner == owner);
            let (methods, traits): (Vec<&Item>, Vec<&Item>) =
                of_owner.partition(|item| item.is_method());
            let methods: Vec<&str> = methods.iter().filter_map(|item| item.method()).collect();
            let mut traits: Vec<&str> = (traits.iter())
                .map(|item| implemented_trait(&item.header))
                .collect();
            // `IntoIterator` is implemented for a collection and for references to it.
            traits.dedup();
            text += &paragraph("Methods", &methods);
            text += &paragraph("Traits", &traits);
        }
    }
    text
}

/// `names` as a paragraph of at most 100 columns, or nothing.
fn paragraph(head: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let (mut text, mut columns) = (format!("\n{head}:"), head.len() + 1);
    for (index, name) in names.iter().enumerate() {
        let end = if index + 1 < names.len() { "," } else { ".\n" };
        let word = format!("`{name}`{end}");
        if columns + 1 + word.len() > 100 {
            (text, columns) = (text + "\n" + &word, word.len());
        } else {
            (text, columns) = (text + " " + &word, columns + 1 + word.len());
        }
    }
    text
}

/// The trait, without the modules that it is in, in the header of an `impl`.
fn implemented_trait(header: &str) -> &str {
    let before = header.split(" for ").next().unwrap_or(header);
    // What follows the parameters of the `impl`, which end where all their angles are closed.
    let mut depth = 0;
    let start = before
        .char_indices()
        .find_map(|(index, letter)| {
            match letter {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => return None,
            }
            (depth == 0).then_some(index + 1)
        })
        .unwrap_or(0);
    let path = before[start..].trim();
    let parameters = path.find('<').unwrap_or(path.len());
    path[..parameters]
        .rfind(':')
        .map_or(path, |colon| &path[colon + 1..])
}
