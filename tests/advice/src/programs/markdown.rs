//! Pages of Markdown, turned into HTML by `pulldown-cmark`.
//!
//! A page and all that the parser allocates for it fit the cache. A hint for its allocations
//! changes nothing.

use super::mix;
use pulldown_cmark::{Parser, html};

pub(super) fn before(size: usize) -> u64 {
    pages(size, render)
}

pub(super) fn after(size: usize) -> u64 {
    pages(size, |text| ccmalloc::near(&(), || render(text)))
}

fn render(text: &str) -> String {
    let mut page = String::new();
    html::push_html(&mut page, Parser::new(text));
    page
}

fn pages(size: usize, render: impl Fn(&str) -> String) -> u64 {
    (0..size).fold(0, |sum, number| {
        let section =
            format!("# Page {number}\n\nSome *words* and `code`.\n\n- one\n- [two](three)\n\n");
        mix(
            sum,
            render(&section.repeat(20)).bytes().map(u64::from).sum(),
        )
    })
}
