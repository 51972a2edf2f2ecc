//! Text that fits: widths, tables, and names of strangers.

use std::fmt::Write as _;
use std::path::Path;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::profile::Frame;

/// A name as it may be printed: characters that move the cursor, are invisible or turn the
/// direction of text are escaped as Rust does.
pub(crate) fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for char in name.chars() {
        let is_hidden = matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
        match char.is_control() || is_hidden {
            true => text.extend(char.escape_default()),
            false => text.push(char),
        }
    }
    text
}

/// The name with what a terminal would act on escaped, if it has any.
#[cfg(feature = "cli")]
pub fn escaped(name: &str) -> std::borrow::Cow<'_, str> {
    use std::borrow::Cow;

    match name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(escape(name)),
    }
}

/// Cuts a text at its end so that it takes at most `width` columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let mut cut: String = { text.chars() }
        .take_while(|char| {
            let columns = char.width().unwrap_or(0);
            let fits = columns <= left;
            left = left.saturating_sub(columns);
            fits
        })
        .collect();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Cuts a text in its middle so that it takes at most `width` columns: a third of them is its
/// start.
pub(crate) fn fit_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let start = fit(text, width / 3);
    let mut left = width.saturating_sub(start.width());
    let mut end = text.len();
    for (at, char) in text.char_indices().rev() {
        let columns = char.width().unwrap_or(0);
        if columns > left {
            break;
        }
        left -= columns;
        end = at;
    }
    start + &text[end..]
}

/// The last two names of a function's path, without generic arguments: `Work::read_dir` of
/// `<ignore::walk::Work<T> as Iterator>::read_dir`.
#[cfg_attr(
    not(feature = "cli"),
    expect(unreachable_pub, reason = "for `cctrace`, which needs the feature")
)]
pub fn short_function(name: &str) -> String {
    // The type whose method it is stands for the angle brackets around it.
    if let Some(rest) = name.strip_prefix('<')
        && let Some(end) = closing(rest)
    {
        let own = rest[..end]
            .split_once(" as ")
            .map_or(&rest[..end], |it| it.0);
        // A slice, a tuple or a pointer has no path.
        if own.starts_with(|char: char| char.is_alphabetic() || char == '_' || char == '<') {
            let own = without_arguments(own);
            let last = own.rsplit("::").next().unwrap_or(&own).to_owned();
            return last + &without_arguments(&rest[end + 1..]);
        }
    }
    let short = without_arguments(name);
    // A method of a slice.
    let name = if short.starts_with("::") {
        name
    } else {
        &short
    };
    let mut parts: Vec<&str> = name.split("::").collect();
    // A closure says nothing without its function.
    let named = { parts.iter() }
        .rposition(|part| !part.starts_with('{'))
        .unwrap_or(0);
    parts.drain(..named.saturating_sub(1));
    parts.join("::")
}

/// Where the bracket closes that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        match char {
            '<' => depth += 1,
            // Not that of an arrow.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = char;
    }
    None
}

fn without_arguments(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before.strip_suffix("::").unwrap_or(before));
        match closing(after) {
            Some(end) => rest = &after[end + 1..],
            None => return name.to_owned(),
        }
    }
    text + rest
}

/// Cuts a path at its start, between folders, so that it takes at most `width` columns; the last
/// part stays.
pub(crate) fn fit_path(path: &str, width: usize) -> String {
    let mut rest = path;
    while rest.width() + usize::from(rest.len() < path.len()) > width {
        let Some((_, shorter)) = rest.split_once('/') else {
            break;
        };
        rest = shorter;
    }
    match rest.len() < path.len() {
        true => format!("…{}", &path[path.len() - rest.len() - 1..]),
        false => path.to_owned(),
    }
}

/// Breaks a text at spaces; lines after the first are indented by `indent`. A word that is too long
/// is cut.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one line");
        let is_empty = line.trim().is_empty() && !word.is_empty();
        if line.width() + 1 + word.width() > width && !is_empty {
            lines.push(format!("{:indent$}{word}", ""));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| fit(line, width)).collect()
}

/// Where source files lie, without the folders that say nothing: the root of the project, the hash
/// of the compiler, the registry's own folder.
pub(crate) fn short_path(path: &str, root: Option<&Path>) -> String {
    let relative = root.and_then(|root| Path::new(path).strip_prefix(root).ok());
    if let Some(relative) = relative {
        return escape(&relative.to_string_lossy());
    }
    if let Some((_, rest)) = path
        .strip_prefix("/rustc/")
        .and_then(|path| path.split_once('/'))
    {
        return escape(rest.strip_prefix("library/").unwrap_or(rest));
    }
    let in_registry = path
        .split_once("/registry/src/")
        .and_then(|(_, rest)| rest.split_once('/'));
    escape(in_registry.map_or(path, |(_, rest)| rest))
}

/// `src/main.rs:12 Table::load`, without the first folders of a path that takes more than
/// `max_path` columns.
pub(crate) fn place(frame: &Frame, root: Option<&Path>, max_path: usize) -> String {
    named_place(frame, &short_function(&frame.function), root, max_path)
}

/// The same with another name of the function.
pub(crate) fn named_place(
    frame: &Frame,
    function: &str,
    root: Option<&Path>,
    max_path: usize,
) -> String {
    let function = match function {
        "" => format!("{:#x}", frame.address),
        name => escape(name),
    };
    if frame.file.is_empty() {
        let module = escape(&frame.module);
        let module = if module.is_empty() { "?" } else { &module };
        return format!("{function} in {module}");
    }
    let path = fit_path(&short_path(&frame.file, root), max_path);
    match frame.line {
        0 => format!("{path} {function}"),
        number => format!("{path}:{number} {function}"),
    }
}

/// `pubgrub core.rs:88`: the package and the name of the file.
pub(crate) fn short_line(frame: &Frame, root: Option<&Path>) -> String {
    let path = short_path(&frame.file, root);
    let file = path.rsplit('/').next().unwrap_or(&path);
    // A folder of a package ends in its version, that of a checkout in a hash.
    let after = frame
        .file
        .split_once("/checkouts/")
        .map(|(_, rest)| escape(rest));
    let folder = after
        .as_deref()
        .unwrap_or(&path)
        .split('/')
        .next()
        .unwrap_or_default();
    let package = folder.rsplit_once('-').map_or(folder, |(name, _)| name);
    match package.is_empty() || package == file {
        true => format!("{file}:{}", frame.line),
        false => format!("{package} {file}:{}", frame.line),
    }
}

/// One column.
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) is_number: bool,
}

/// Columns as wide as their widest cell; the last one has what is left.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    /// Below the cells.
    note: Option<String>,
    /// The colour of a terminal with 256.
    colour: Option<u8>,
}

impl Table {
    /// Heads that begin with `>` are those of numbers.
    pub(crate) fn new(heads: &[&str]) -> Table {
        let column = |head: &&str| Column {
            head: head.strip_prefix('>').unwrap_or(head).to_owned(),
            is_number: head.starts_with('>'),
        };
        Table {
            columns: heads.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>, note: Option<String>, colour: Option<u8>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(Row {
            cells,
            note,
            colour,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, heads first.
    pub(crate) fn print(&self, out: &mut String, width: usize, colour: bool) {
        let widest = |(i, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| row.cells[i].width());
            cells.chain([column.head.width()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(widest).collect();
        if let Some((last, others)) = widths.split_last_mut() {
            let taken: usize = others.iter().map(|width| width + 2).sum();
            *last = (*last).min(width.saturating_sub(taken));
        }
        let heads = self
            .columns
            .iter()
            .map(|column| column.head.clone())
            .collect::<Vec<String>>();
        let heads = self.line(&widths, &heads);
        line(out, &fit(&heads, width), colour.then_some("1"));
        for row in &self.rows {
            let cells = self.line(&widths, &row.cells);
            let sequence = row
                .colour
                .filter(|_| colour)
                .map(|number| format!("38;5;{number}"));
            line(out, &fit(&cells, width), sequence.as_deref());
            if let Some(note) = &row.note {
                line(out, &fit(&format!("    {note}"), width), None);
            }
        }
    }

    fn line(&self, widths: &[usize], cells: &[String]) -> String {
        let mut text = String::new();
        for ((column, &width), cell) in self.columns.iter().zip(widths).zip(cells) {
            let cell = fit(cell, width);
            let room = " ".repeat(width - cell.width());
            let [before, after] = match column.is_number {
                true => [&*room, ""],
                false => ["", &*room],
            };
            let gap = if text.is_empty() { "" } else { "  " };
            let written = write!(text, "{gap}{before}{cell}{after}");
            written.expect("a string takes text");
        }
        text
    }
}

/// Adds a line without spaces at its end, in a colour if one is given.
pub(crate) fn line(out: &mut String, text: &str, sequence: Option<&str>) {
    let text = text.trim_end();
    match sequence.filter(|_| !text.is_empty()) {
        Some(sequence) => out.extend(["\u{1b}[", sequence, "m", text, "\u{1b}[0m\n"]),
        None => out.extend([text, "\n"]),
    }
}

/// Eighths of a line of text.
pub(crate) fn bars(values: &[u64], full: u64) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |&value: &u64| {
        let eighths = (u128::from(value) * 8).div_ceil(u128::from(full.max(1)));
        BARS[usize::try_from(eighths).unwrap_or(8).min(8)]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_escaped() {
        let cases = [
            ("demo::main", "demo::main"),
            ("größe<Vec<日本>>", "größe<Vec<日本>>"),
            ("a\u{1b}[2Jb\n\r\t", "a\\u{1b}[2Jb\\n\\r\\t"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("x\u{202e}gpj", "x\\u{202e}gpj"),
            ("a\u{200b}\u{2028}\u{feff}", "a\\u{200b}\\u{2028}\\u{feff}"),
        ];
        for (name, text) in cases {
            assert_eq!(escape(name), text);
        }
    }

    #[test]
    fn texts_are_cut_to_columns() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        // Two columns each.
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit_middle("abcdefghi", 9), "abcdefghi");
        assert_eq!(fit_middle("abcdefghij", 9), "ab…efghij");
        assert_eq!(fit_middle("日本語日本語", 9), "日…日本語");
        assert_eq!(fit_middle("abc", 0), "");
        assert_eq!(
            wrap("label one two three", 12, 6),
            ["label one", "      two", "      three"]
        );
        assert_eq!(wrap("abcdefgh", 4, 2), ["abc…"]);
        assert_eq!(wrap("", 4, 2), [""]);
    }

    #[test]
    fn functions_keep_two_names() {
        let cases = [
            ("demo::record::Record::new", "Record::new"),
            ("<ignore::walk::Work>::read_dir", "Work::read_dir"),
            (
                "<rg::search::Worker<a::Buffer> as core::clone::Clone>::clone",
                "Worker::clone",
            ),
            (
                "rg::search_parallel::{closure#0}",
                "rg::search_parallel::{closure#0}",
            ),
            ("demo::map::<u32, fn(u8) -> u8>", "demo::map"),
            ("<[u8]>::to_vec", "<[u8]>::to_vec"),
            ("main", "main"),
            ("operator<", "operator<"),
            ("", ""),
        ];
        for (name, text) in cases {
            assert_eq!(short_function(name), text);
        }
    }

    #[test]
    fn paths_lose_what_says_nothing() {
        let root = Some(Path::new("/home/me/demo"));
        let cases = [
            ("/home/me/demo/src/main.rs", "src/main.rs"),
            ("/rustc/0123/library/alloc/src/vec.rs", "alloc/src/vec.rs"),
            (
                "/home/me/.cargo/registry/src/index-0f/regex-1.0/src/lib.rs",
                "regex-1.0/src/lib.rs",
            ),
            ("src/\u{1b}.rs", "src/\\u{1b}.rs"),
        ];
        for (path, text) in cases {
            assert_eq!(short_path(path, root), text);
        }
        assert_eq!(short_path("/a/b.rs", None), "/a/b.rs");
    }

    #[test]
    fn lines_of_packages_keep_their_names() {
        let registry = "/home/me/.cargo/registry/src/index-0f/";
        for (file, text) in [
            (
                format!("{registry}pubgrub-0.2.0/src/internal/core.rs"),
                "pubgrub core.rs:7",
            ),
            (
                format!("{registry}base64-url-3.0.0-rc.1/src/lib.rs"),
                "base64-url-3.0.0 lib.rs:7",
            ),
            (
                "/home/me/.cargo/git/checkouts/tree-0af1/c01/src/a.rs".to_owned(),
                "tree a.rs:7",
            ),
            ("/usr/src/zlib/inflate.c".to_owned(), "inflate.c:7"),
        ] {
            let frame = Frame {
                file,
                line: 7,
                ..Frame::default()
            };
            assert_eq!(short_line(&frame, None), text);
        }
    }

    #[test]
    fn tables_align_and_fit() {
        let mut table = Table::new(&[">bytes", "where"]);
        let cells = |bytes: &str, place: &str| vec![bytes.to_owned(), place.to_owned()];
        table.row(cells("1 kB", "short"), None, Some(9));
        table.row(
            cells("1 MB", "rather a long place"),
            Some("a note".to_owned()),
            None,
        );
        let mut text = String::new();
        table.print(&mut text, 16, false);
        assert_eq!(
            text,
            "bytes  where\n 1 kB  short\n 1 MB  rather a…\n    a note\n"
        );
        text.clear();
        table.print(&mut text, 16, true);
        assert!(
            text.contains("\u{1b}[38;5;9m 1 kB  short\u{1b}[0m\n"),
            "{text:?}"
        );
    }

    #[test]
    fn bars_show_something_of_everything() {
        assert_eq!(bars(&[0, 1, 50, 99, 100], 100), " ▁▄██");
        assert_eq!(bars(&[u64::MAX, 3], 0), "██");
    }
}
