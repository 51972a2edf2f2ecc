//! The page for users.

use std::fmt::Write;

use super::item::Item;

/// `docs/ctree-std.md`.
pub(super) fn page(items: &[Item]) -> String {
    let methods = items.iter().filter(|item| item.is_method()).count();
    let mut text = format!(
        "# `ctree` beside the standard library

`CTreeMap` and `CTreeSet` have every stable method of Rust {version}'s `BTreeMap` and `BTreeSet`.
So have their entries and their iterators: {methods} methods and {traits} implemented traits.
They are listed below with the signatures of the standard library. None is missing.

`tests/all/std_surface` makes this page from the standard library's source. It also makes
`ctree/tests/all/std_signatures.rs`, which has a method of the same signature that calls ours for
each method in the list, and a function with the same bounds for each trait. It compiles, so that a
program finds the same names, parameters, bounds and results. To compare all three:

```text
cargo test -p cctree -p tests --test all std_s
```

Random programs in `ctree/tests/all/dynamic` run on both and show that the methods do the same. They
compare the auto traits and the variance of all types, too. Where the standard library says
`A: Allocator`, read the trait of `allocator-api2`. The crate's documentation says what `ctree` has
beyond this list: `cargo doc -p cctree --open`.
",
        version = super::VERSION,
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
            let of_owner = || of_module.iter().filter(|item| item.owner == owner);
            write!(text, "\n## `{ours}`\n\n").expect("writing to a string");
            if of_owner().any(|item| item.is_method()) {
                text += "| method | in std since | signature |\n|---|---|---|\n";
                for item in of_owner().filter(|item| item.is_method()) {
                    writeln!(
                        text,
                        "| `{}` | {} | `{}` |",
                        item.method().unwrap_or_default(),
                        item.since,
                        item.body
                    )
                    .expect("writing to a string");
                }
                text += "\n";
            }
            if of_owner().any(|item| !item.is_method()) {
                text += "| trait | in std since | implementation |\n|---|---|---|\n";
            }
            for item in of_owner().filter(|item| !item.is_method()) {
                let body = if item.body.is_empty() {
                    String::new()
                } else {
                    format!(" {{ {} }}", item.body)
                };
                writeln!(
                    text,
                    "| `{}` | {} | `{}{body}` |",
                    implemented_trait(&item.header),
                    item.since,
                    item.header
                )
                .expect("writing to a string");
            }
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
