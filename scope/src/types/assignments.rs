//! Types of allocations in C and C++, from the source: the type of the pointer that is assigned to,
//! or the operand of `new`.

use std::collections::HashMap;
use std::path::Path;

use gimli::UnitOffset;
use gimli::constants as dw;

use super::Holder;
use super::layout;
use crate::profile::Frame;
use crate::symbols::debug_info::{self, Dwarf, Unit};

/// A line of a function.
pub(super) type Line = (String, u32);

/// What the source says of the allocation in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// `new Node(1)`.
    Type(String),
    /// The variable and its members that are assigned: `list->first = malloc(9)`.
    Place(Vec<String>),
    Nothing,
}

type Wanted<'w> = (&'w Line, &'w Told);

/// Endings of the names of source files whose allocations are calls without a type.
const ENDINGS: [&str; 7] = [".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".C"];

/// Larger source files are not read.
const MAX_SOURCE: u64 = 16 << 20;

/// The line of a frame of C, if there is debug information.
pub(super) fn line_of(frame: &Frame) -> Option<Line> {
    let is_c = ENDINGS.iter().any(|ending| frame.file.ends_with(ending));
    (is_c && frame.line > 0).then(|| (frame.function.clone(), frame.line))
}

/// What the source line of `frame` says.
pub(super) fn told(frame: &Frame) -> Told {
    let read = || {
        let source = Path::new(&frame.file);
        { source.metadata().ok() }.filter(|there| there.is_file() && there.len() <= MAX_SOURCE)?;
        let text = std::fs::read(source).ok()?;
        let line = text
            .split(|&byte| byte == b'\n')
            .nth(frame.line as usize - 1)?;
        let line = String::from_utf8_lossy(line);
        new_type(&line)
            .map(Told::Type)
            .or_else(|| place(&line).map(Told::Place))
    };
    read().unwrap_or(Told::Nothing)
}

/// `Node` of `new Node(1)` and of `make_unique<Node>(1)`.
fn new_type(line: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let after = |word: &str| {
        let (before, after) = line.split_once(word)?;
        (!before.ends_with(is_word)).then_some(after.trim_start())
    };
    let made = ["make_unique<", "make_shared<"].into_iter().find_map(after);
    let (text, mut depth) = match made {
        Some(text) => (text, 1),
        None => (after("new ")?, 0),
    };
    let end = text.find(|c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        (depth == 0)
            && matches!(c, '>' | '(' | '[' | '{' | ';' | ',' | ')')
            && (c != '>' || made.is_some())
    })?;
    let name = text[..end].trim().trim_start_matches("struct ");
    (name.starts_with(is_word)).then(|| name.to_owned())
}

/// The variable and its members that a line assigns.
fn place(line: &str) -> Option<Vec<String>> {
    // A loop may stand before it.
    let (target, value) = match line.find("alloc") {
        Some(at) => line[..at].rsplit_once('=')?,
        None => line.split_once('=')?,
    };
    let target = target.trim_end();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // No assignment but a comparison, or of a number.
    if value.starts_with('=')
        || target.ends_with(['=', '!', '<', '>', '+', '-', '*', '/', '&', '|'])
    {
        return None;
    }
    let from = target.rfind(|c: char| !is_word(c) && !matches!(c, '.' | '-' | '>'));
    let path = target[from.map_or(0, |at| at + 1)..].replace("->", ".");
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    path.iter()
        .all(|part| !part.is_empty() && part.chars().all(is_word))
        .then_some(path)
}

/// What the `wanted` lines allocate for.
pub(super) fn find(
    path: &Path,
    wanted: &HashMap<Line, Told>,
) -> Result<HashMap<Line, Holder>, Box<dyn std::error::Error>> {
    let mut found: HashMap<Line, Holder> = HashMap::new();
    for (line, told) in wanted {
        if let Told::Type(name) = told {
            let (name, element) = (name.clone(), name.clone());
            found.insert(line.clone(), Holder { name, element });
        }
    }
    debug_info::each_unit(path, |dwarf, unit| {
        find_in(dwarf, unit, wanted, &mut found)?;
        Ok(found.len() < wanted.len())
    })?;
    Ok(found)
}

fn find_in(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    wanted: &HashMap<Line, Told>,
    found: &mut HashMap<Line, Holder>,
) -> gimli::Result<()> {
    // The function around, its depth, and its lines that are wanted.
    let mut around: Option<(isize, Vec<Wanted<'_>>)> = None;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if around
            .as_ref()
            .is_some_and(|(depth, _)| entry.depth() <= *depth)
        {
            around = None;
        }
        match entry.tag() {
            dw::DW_TAG_subprogram => {
                let Some(name) = debug_info::name_of(dwarf, unit, entry) else {
                    continue;
                };
                let lines = wanted.iter().filter(|((function, _), _)| *function == name);
                around = Some((entry.depth(), lines.collect()));
            }
            dw::DW_TAG_variable | dw::DW_TAG_formal_parameter => {
                let Some((_, lines)) = around.as_ref().filter(|(_, lines)| !lines.is_empty())
                else {
                    continue;
                };
                let Some(name) = debug_info::name_of(dwarf, unit, entry) else {
                    continue;
                };
                let declared = entry.attr_value(dw::DW_AT_decl_line);
                let declared = declared.and_then(|line| line.udata_value());
                let Some(kind) = layout::type_of(unit, entry) else {
                    continue;
                };
                for (line, told) in lines {
                    let kind = match told {
                        Told::Place(path) if path[0] == name => {
                            member(dwarf, unit, kind, &path[1..])?
                        }
                        Told::Nothing if declared == Some(u64::from(line.1)) => Some(kind),
                        _ => None,
                    };
                    let holder = kind.map(|kind| pointed_to(dwarf, unit, kind)).transpose()?;
                    if let Some(holder) = holder.flatten() {
                        found.insert((*line).clone(), holder);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The type of a member of a member of the type at `at`, or of what that points to.
fn member(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    at: UnitOffset,
    path: &[String],
) -> gimli::Result<Option<UnitOffset>> {
    let mut at = at;
    for part in path {
        at = layout::strip(unit, at, true)?;
        let around = unit.entry(at)?;
        if around.tag() == dw::DW_TAG_pointer_type {
            let Some(target) = layout::type_of(unit, &around) else {
                return Ok(None);
            };
            at = layout::strip(unit, target, true)?;
        }
        let mut entries = unit.entries_at_offset(at)?;
        let root = entries.next_dfs()?.map_or(0, |entry| entry.depth());
        let found = loop {
            let Some(entry) = entries.next_dfs()?.filter(|entry| entry.depth() > root) else {
                return Ok(None);
            };
            let is_it = entry.tag() == dw::DW_TAG_member && entry.depth() == root + 1;
            if is_it && debug_info::name_of(dwarf, unit, entry).as_ref() == Some(part) {
                break layout::type_of(unit, entry);
            }
        };
        match found {
            Some(kind) => at = kind,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// What a pointer of the type at `at` leads to; `None` for `void` and what is no pointer.
fn pointed_to(dwarf: &Dwarf<'_>, unit: &Unit<'_>, at: UnitOffset) -> gimli::Result<Option<Holder>> {
    let pointer = unit.entry(layout::strip(unit, at, true)?)?;
    if pointer.tag() != dw::DW_TAG_pointer_type {
        return Ok(None);
    }
    let Some(target) = layout::type_of(unit, &pointer) else {
        return Ok(None);
    };
    let target = unit.entry(layout::strip(unit, target, false)?)?;
    let Some(element) = debug_info::name_of(dwarf, unit, &target) else {
        return Ok(None);
    };
    let name = format!("{}{element}", layout::keyword(target.tag()));
    Ok(Some(Holder { name, element }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_they_allocate_for() {
        for (line, made) in [
            ("auto n = new Node(1);", "Node"),
            ("push(new a::Pair<int, b<c>>[3]);", "a::Pair<int, b<c>>"),
            (
                "auto p = std::make_unique<a::Node<int>>(1);",
                "a::Node<int>",
            ),
        ] {
            assert_eq!(new_type(line).as_deref(), Some(made));
        }
        assert_eq!(new_type("renew Node(1); new (at) Node(1);"), None);
        for (line, path) in [
            ("  struct node *n = malloc(8);", "n"),
            ("a.list->head = malloc(8);", "a list head"),
            ("for (i = 0; i < 9; i++) n = calloc(8, 1);", "n"),
        ] {
            assert_eq!(place(line).unwrap().join(" "), path);
        }
        for line in ["if (n == f())", "n[3] = f()", "n += f()", "f(n);", "= 3"] {
            assert_eq!(place(line), None, "{line}");
        }
    }
}
