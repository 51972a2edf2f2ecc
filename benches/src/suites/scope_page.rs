//! The page of `ccscope report`: how long a browser takes to open a large one, how long its frames
//! are while filters change, and how many bytes a site takes.

use std::convert::Infallible;
use std::fs;
use std::path::Path;

use ccscope::profile::{Chunk, Profile};
use ccscope::views::{Options, page};
use tempfile::TempDir;

#[path = "../../../scope/tests/all/browser.rs"]
mod browser;
#[path = "../../../scope/tests/all/page_profile.rs"]
mod page_profile;

use self::browser::Browser;
use super::scope::floor;
use crate::rounds::Rounds;
use crate::workload::{Effort, Failure, Rows, Workload};

const SITES: usize = 100_000;
const CHUNKS: u64 = 10_000_000;
/// What is typed into the filter of functions, letter by letter.
const TYPED: [&str; 5] = ["m", "mo", "mod", "module_1", ""];

fn write(path: &Path, profile: &Profile, chunks: u64) -> Result<u64, Failure> {
    let blocks = page_profile::chunks(profile, chunks).map(Ok::<Vec<Chunk>, Infallible>);
    let html = page::to_html(profile, None, blocks, &Options::default())?;
    fs::write(path, &html)?;
    Ok(html.len() as u64)
}

fn missing(tool: &str) {
    eprintln!("left out: the time to open a page (there is no {tool})");
}

/// Rows of time are left out where there is no Chromium.
pub(super) fn page_of_1e7(workload: &Workload, effort: &Effort) -> Rows {
    if !effort.wants(workload, workload.if_full[0]) {
        return Ok(Vec::new());
    }
    let folder = TempDir::new()?;
    let path = folder.path().join("page.html");
    let shell = write(&path, &page_profile::profile(1), 0)?;
    let size = write(&path, &page_profile::profile(SITES), CHUNKS)?;
    let per_site = (size - shell) as f64 / SITES as f64;
    let mut rows = vec![floor(
        "scope_page_bytes_per_site",
        "B",
        &Rounds::new(vec![per_site]),
        200.0,
    )];
    let Some(mut browser) = Browser::start() else {
        return Ok(rows);
    };
    let (mut opens, mut frames) = (Vec::new(), Vec::new());
    for _ in 0..effort.process_rounds.max(3) {
        opens.push(browser.open(&path, "view=flame"));
        let typed = TYPED.map(|text| {
            browser.act(&format!(
                "const it = document.getElementById('fn'); it.value = '{text}'; \
                 it.dispatchEvent(new Event('input'))"
            ))
        });
        frames.extend(typed);
    }
    let [opens, frames] = [opens, frames].map(Rounds::new);
    rows.push(floor(workload.name, "ms", &opens, 2000.0));
    rows.push(floor("scope_page_frame", "ms", &frames, 50.0));
    Ok(rows)
}
