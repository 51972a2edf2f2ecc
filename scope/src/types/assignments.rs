//! Types of C: an allocation has no type, but what it is assigned to is a pointer to one.

use std::collections::HashMap;
use std::path::Path;

use gimli::UnitOffset;
use gimli::constants as dw;

use super::Holder;
use super::layout::{self, Dwarf, Unit};
use crate::profile::Frame;

/// A line of a function.
pub(super) type Line = (String, u32);

/// A line, and the variable that it assigns.
type Wanted<'w> = (&'w Line, &'w Option<String>);

/// Endings of the names of source files whose allocations are calls without a type.
const ENDINGS: [&str; 7] = [".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".C"];

/// Larger source files are not read.
const MAX_SOURCE: u64 = 16 << 20;

/// The line of a frame of C, if there is debug information.
pub(super) fn line_of(frame: &Frame) -> Option<Line> {
    let is_c = ENDINGS.iter().any(|ending| frame.file.ends_with(ending));
    (is_c && frame.line > 0).then(|| (frame.function.clone(), frame.line))
}

/// The variable that the source line of `frame` assigns; `None` for anything else.
pub(super) fn assigned(frame: &Frame) -> Option<String> {
    let source = Path::new(&frame.file);
    source
        .metadata()
        .ok()
        .filter(|there| there.is_file() && there.len() <= MAX_SOURCE)?;
    let text = std::fs::read(source).ok()?;
    let line = text
        .split(|&byte| byte == b'\n')
        .nth(frame.line as usize - 1)?;
    let line = String::from_utf8_lossy(line).into_owned();
    let (target, value) = line.split_once('=')?;
    let target = target.trim_end();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = target.trim_end_matches(is_word);
    // A member is no variable, and a comparison no assignment.
    let other = before.ends_with(['.', '>', '!', '<', '+', '-', ']']) || value.starts_with('=');
    (!other && before.len() < target.len()).then(|| target[before.len()..].to_owned())
}

/// What the `wanted` lines, some with the variable they assign, allocate for.
pub(super) fn find(
    path: &Path,
    wanted: &HashMap<Line, Option<String>>,
) -> Result<HashMap<Line, Holder>, Box<dyn std::error::Error>> {
    let mut found = HashMap::new();
    layout::each_unit(path, |dwarf, unit| {
        find_in(dwarf, unit, wanted, &mut found)?;
        Ok(found.len() < wanted.len())
    })?;
    Ok(found)
}

fn find_in(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    wanted: &HashMap<Line, Option<String>>,
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
                let Some(name) = layout::name_of(dwarf, unit, entry) else {
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
                let Some(name) = layout::name_of(dwarf, unit, entry) else {
                    continue;
                };
                let declared = entry.attr_value(dw::DW_AT_decl_line);
                let declared = declared.and_then(|line| line.udata_value());
                let Some(kind) = layout::type_of(unit, entry) else {
                    continue;
                };
                for (line, variable) in lines {
                    let this = match variable {
                        Some(variable) => *variable == name,
                        None => declared == Some(u64::from(line.1)),
                    };
                    if this && let Some(holder) = pointed_to(dwarf, unit, kind)? {
                        found.insert((*line).clone(), holder);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
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
    let Some(element) = layout::name_of(dwarf, unit, &target) else {
        return Ok(None);
    };
    let name = match target.tag() {
        dw::DW_TAG_structure_type => format!("struct {element}"),
        dw::DW_TAG_union_type => format!("union {element}"),
        _ => element.clone(),
    };
    Ok(Some(Holder { name, element }))
}
