//! A profile as one page for a browser, which needs no network and no server.
//!
//! The page is a shell, a chart library, our own scripts (`page/` beside `src/`) and the profile as
//! compressed columns. Names of the profile are in the columns only, and scripts put them into the
//! document as text, never as markup. The content security policy allows the scripts and styles
//! of the page, by hash, and nothing else.

mod columns;
mod data;
mod leaks;
mod pages;
mod sample;
mod source;

use std::fmt::Display;
use std::iter;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::analyses::diff::Diff;
use crate::profile::{Chunk, Profile};
use crate::views::Options;

macro_rules! page_file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/", $name))
    };
}

/// Libraries, each with its licence.
const LIBRARIES: [(&str, &str); 1] = [(
    page_file!("vendor/uplot.min.js"),
    page_file!("vendor/uplot.LICENSE"),
)];
/// Our own modules, each after those that it imports.
const MODULES: [&str; 21] = [
    page_file!("units.js"),
    page_file!("colours.js"),
    page_file!("dom.js"),
    page_file!("data.js"),
    page_file!("state.js"),
    page_file!("filter.js"),
    page_file!("tree.js"),
    page_file!("charts.js"),
    page_file!("findings.js"),
    page_file!("flame.js"),
    page_file!("sites.js"),
    page_file!("blocks.js"),
    page_file!("bytes.js"),
    page_file!("site.js"),
    page_file!("layers.js"),
    page_file!("graph.js"),
    page_file!("leaks.js"),
    page_file!("regions.js"),
    page_file!("memory_pages.js"),
    page_file!("changes.js"),
    page_file!("main.js"),
];
const STYLES: [&str; 2] = [page_file!("vendor/uplot.min.css"), page_file!("style.css")];
const SHELL: &str = page_file!("page.html");

/// The page of a profile. `chunks` are those of the profile, in blocks: there may be more than
/// memory holds. [`Options::filters`] are left to the reader of the page. With `since`, an older
/// profile and what has changed, the page shows these, too.
///
/// # Errors
///
/// If `chunks` gives one, or memory is short.
pub fn to_html<E: Display>(
    profile: &Profile,
    since: Option<(&Profile, &Diff)>,
    chunks: impl Iterator<Item = Result<Vec<Chunk>, E>>,
    options: &Options,
) -> Result<String, Error> {
    let data = data::Data::new(profile, options);
    let mut sample = data.sample();
    for block in chunks {
        sample.add(&block.map_err(failed)?);
    }
    let text = data.finish(since, &sample.finish()).map_err(failed)?;
    Ok(assemble(&text))
}

fn failed(why: impl Display) -> Error {
    Error::new(why.to_string())
}

fn assemble(data: &str) -> String {
    let modules: String = MODULES.iter().map(|text| part(text)).collect();
    let scripts: Vec<&str> = LIBRARIES.iter().map(|it| it.0).chain([&*modules]).collect();
    let style = STYLES.concat();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hashes(scripts.iter().copied()),
        hashes(iter::once(&*style)),
    );
    let licences: String = LIBRARIES.iter().map(|it| format!("{}\n", it.1)).collect();
    let elements: String = { scripts.iter().enumerate() }
        .map(|(i, text)| {
            let is_ours = i + 1 == scripts.len();
            let kind = if is_ours { " type=\"module\"" } else { "" };
            format!("<script{kind}>{text}</script>\n")
        })
        .collect();
    // What is put in contains none of these words: constants, and base64.
    let parts = [
        ("{{policy}}", &*policy),
        ("{{style}}", &style),
        ("{{licences}}", &licences),
        ("{{scripts}}", &elements),
        ("{{data}}", data),
    ];
    let mut page = String::with_capacity(data.len() + (1 << 18));
    let mut rest = SHELL;
    for (word, text) in parts {
        let (before, after) = rest.split_once(word).expect("the shell has each word once");
        page.extend([before, text]);
        rest = after;
    }
    page + rest
}

/// A module as a part of the one script of the page: a function, of which what the module exports
/// goes to all modules after it.
fn part(text: &str) -> String {
    let mut body = String::with_capacity(text.len());
    let mut names = Vec::new();
    let mut is_import = false;
    for line in text.lines() {
        is_import |= line.starts_with("import ");
        if is_import {
            is_import = !line.ends_with(';');
            continue;
        }
        let line = match line.strip_prefix("export ") {
            Some(line) => {
                let mut words = line.split(|char: char| !(char.is_alphanumeric() || char == '_'));
                names.extend(words.find(|it| !["async", "function", "const"].contains(it)));
                line
            }
            None => line,
        };
        body.extend([line, "\n"]);
    }
    let names = names.join(", ");
    format!("const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n")
}

fn hashes<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let words: Vec<String> = texts
        .map(|text| format!("'sha256-{}'", hash(text)))
        .collect();
    words.join(" ")
}
