//! Sizes and fields of types, from debug information.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};

use super::names;
use crate::profile::Field;
use crate::symbols::debug_info::{Dwarf, Entry, Unit, borrowed, each_unit, name_of, text};
use crate::symbols::demangle;
use crate::symbols::generics::{last_part, normal};

/// Languages whose types of structures are named `struct node`; the last is C23.
const C: [dw::DwLang; 6] = [
    dw::DW_LANG_C89,
    dw::DW_LANG_C,
    dw::DW_LANG_C99,
    dw::DW_LANG_C11,
    dw::DW_LANG_C17,
    dw::DwLang(0x3e),
];

/// How a type lies in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) size: u64,
    pub(super) fields: Vec<Field>,
    /// Name of an array without a length at the end.
    pub(super) tail: Option<String>,
}

/// Types around the user's, whose field of one of these names is shown as its fields.
const WRAPPERS: [&str; 3] = [
    "alloc::rc::RcInner<",
    "alloc::sync::ArcInner<",
    "alloc::collections::linked_list::Node<",
];
const WRAPPED: [&str; 3] = ["value", "data", "element"];

/// What names of futures begin with: `{async_fn_env#0}`.
const FUTURE: &str = "{async_";
/// Smaller futures within others are one field.
const LARGE: u64 = 256;
/// How far futures within futures are followed, and how many fields they may add.
const MAX_FUTURES: usize = 32;
const MAX_FIELDS: usize = 1000;
/// After the names of a future's fields: of what it was made with, and of locals that it holds.
pub(crate) const CAPTURED: &str = " (captured)";
pub(crate) const AWAIT: &str = " (await at ";

/// How far types are followed that have no size or name of their own.
pub(super) const MAX_DEPTH: usize = 4;

/// The layouts of those types in the file at `path` whose names are keys of `wanted`.
pub(super) fn find<T>(
    path: &Path,
    wanted: &HashMap<String, T>,
) -> Result<HashMap<String, Layout>, Box<dyn std::error::Error>> {
    let mut found = HashMap::new();
    let last_parts = wanted.keys().map(|name| last_part(name)).collect();
    each_unit(path, |dwarf, unit| {
        find_in(dwarf, unit, (wanted, &last_parts), &mut found)?;
        Ok(found.len() < wanted.len())
    })?;
    Ok(found)
}

/// The type at `at` without `const` and such and, if `all`, without names that stand for it.
pub(super) fn strip(unit: &Unit<'_>, at: UnitOffset, all: bool) -> gimli::Result<UnitOffset> {
    let mut at = at;
    for _ in 0..MAX_DEPTH {
        let entry = unit.entry(at)?;
        let through = match entry.tag() {
            dw::DW_TAG_const_type | dw::DW_TAG_volatile_type | dw::DW_TAG_restrict_type => true,
            dw::DW_TAG_typedef => all,
            _ => false,
        };
        match type_of(unit, &entry).filter(|_| through) {
            Some(inner) => at = inner,
            None => break,
        }
    }
    Ok(at)
}

/// With the names that are wanted come their last parts.
fn find_in<'d, T>(
    dwarf: &Dwarf<'d>,
    unit: &Unit<'d>,
    (wanted, last_parts): (&HashMap<String, T>, &HashSet<&str>),
    found: &mut HashMap<String, Layout>,
) -> gimli::Result<()> {
    let closures = wanted.keys().any(|name| name.contains("{closure#"));
    // Names of the entries around the current one, by their depth.
    let mut around: Vec<(isize, Cow<'d, str>)> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        while around
            .last()
            .is_some_and(|(depth, _)| *depth >= entry.depth())
        {
            around.pop();
        }
        let tag = entry.tag();
        let is_type = matches!(
            tag,
            dw::DW_TAG_structure_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_enumeration_type
                | dw::DW_TAG_base_type
                | dw::DW_TAG_typedef
                | dw::DW_TAG_pointer_type
        );
        if !is_type && tag != dw::DW_TAG_namespace && tag != dw::DW_TAG_subprogram {
            continue;
        }
        let Some(name) = borrowed(dwarf, unit, entry, dw::DW_AT_name) else {
            continue;
        };
        if is_type && last_parts.contains(last_part(&name)) {
            let bare = matches!(tag, dw::DW_TAG_base_type | dw::DW_TAG_pointer_type)
                || name.starts_with(['&', '(', '[', '*']);
            let path = around.iter().filter(|_| !bare).map(|(_, name)| name);
            let mut whole: Vec<&str> = path.map(|name| &**name).collect();
            whole.push(&name);
            let whole = normal(&whole.join("::"));
            if wanted.contains_key(&whole)
                && !found.contains_key(&whole)
                && entry.attr(dw::DW_AT_declaration).is_none()
            {
                let wraps = WRAPPERS.iter().any(|wrapper| whole.starts_with(wrapper));
                found.insert(whole, layout(dwarf, unit, entry.offset(), wraps)?);
            }
        }
        let makes_closure = closures
            && tag == dw::DW_TAG_subprogram
            && (name.starts_with("new") || name.starts_with("pin<"))
            && name.contains("_env#");
        around.push((entry.depth(), name));
        if makes_closure
            && let Some(element) = closure_of(dwarf, unit, entry)
            && wanted.contains_key(&element)
            && let Some(at) = first_argument(unit, entry.offset())?
        {
            found
                .entry(element)
                .or_insert(layout(dwarf, unit, at, false)?);
        }
    }
    Ok(())
}

/// What a function boxes. Symbols name closures and futures otherwise than debug information does,
/// which has both names of such a function.
fn closure_of(dwarf: &Dwarf<'_>, unit: &Unit<'_>, function: &Entry<'_>) -> Option<String> {
    let symbol = text(dwarf, unit, function, dw::DW_AT_linkage_name)?;
    let boxed = names::of_self(&demangle(&symbol)).filter(|it| it.path == "alloc::boxed::Box")?;
    boxed.args.into_iter().next()
}

/// The first generic argument of the function at `at`.
fn first_argument(unit: &Unit<'_>, at: UnitOffset) -> gimli::Result<Option<UnitOffset>> {
    let mut entries = unit.entries_at_offset(at)?;
    entries.next_dfs()?;
    while let Some(entry) = entries.next_dfs()?.filter(|it| it.depth() > 0) {
        if entry.tag() == dw::DW_TAG_template_type_parameter {
            return Ok(type_of(unit, entry));
        }
    }
    Ok(None)
}

/// The entry of the type that `entry` refers to.
pub(super) fn type_of(unit: &Unit<'_>, entry: &Entry<'_>) -> Option<UnitOffset> {
    match entry.attr_value(dw::DW_AT_type)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&unit.header),
        _ => None,
    }
}

/// How the type at `at` lies in memory.
pub(super) fn layout(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    at: UnitOffset,
    wraps: bool,
) -> gimli::Result<Layout> {
    let at = strip(unit, at, true)?;
    let size = size(unit, at, MAX_DEPTH)?;
    let mut fields = Vec::new();
    members(
        dwarf,
        unit,
        Part {
            at,
            prefix: "",
            suffix: "",
            start: 0,
            wraps,
            depth: 0,
        },
        &mut fields,
    )?;
    fields.sort_by(|a: &Field, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
    fields.dedup();
    // An array of C without a length takes what follows the type.
    let is_tail = |field: &&Field| field.size == 0 && field.offset > 0;
    let tail = fields
        .last()
        .filter(is_tail)
        .map(|field| field.name.clone());
    fields.retain(|field| field.size > 0);
    Ok(Layout { size, fields, tail })
}

/// Bytes of the type at `at`.
fn size(unit: &Unit<'_>, at: UnitOffset, depth: usize) -> gimli::Result<u64> {
    let mut entries = unit.entries_at_offset(at)?;
    let Some(entry) = entries.next_dfs()? else {
        return Ok(0);
    };
    let (own, tag, inner) = (
        entry.attr_value(dw::DW_AT_byte_size),
        entry.tag(),
        type_of(unit, entry),
    );
    if let Some(size) = own.and_then(|size| size.udata_value()) {
        return Ok(size);
    }
    match (tag, inner) {
        (dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type, _) => {
            Ok(u64::from(unit.encoding().address_size))
        }
        (dw::DW_TAG_array_type, Some(element)) if depth > 0 => {
            let mut count = 1_u64;
            while let Some(range) = entries.next_dfs()? {
                if range.depth() <= 0 {
                    break;
                }
                let number = |name| range.attr_value(name).and_then(|value| value.udata_value());
                let upper = || number(dw::DW_AT_upper_bound).map(|last| last.saturating_add(1));
                let len = number(dw::DW_AT_count).or_else(upper).unwrap_or(0);
                count = count.saturating_mul(len);
            }
            Ok(count.saturating_mul(size(unit, element, depth - 1)?))
        }
        // `const`, `typedef` and such.
        (_, Some(other)) if depth > 0 => size(unit, other, depth - 1),
        _ => Ok(0),
    }
}

/// A type within the one that is laid out.
#[derive(Clone, Copy)]
struct Part<'p> {
    at: UnitOffset,
    /// Comes before the names of its members.
    prefix: &'p str,
    /// Comes after them.
    suffix: &'p str,
    start: u64,
    /// Whether it is one of [`WRAPPERS`].
    wraps: bool,
    /// How many types around it are followed for futures.
    depth: usize,
}

/// Adds the members of a type, and of all its variants.
fn members(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    part: Part<'_>,
    fields: &mut Vec<Field>,
) -> gimli::Result<()> {
    let (prefix, suffix) = (part.prefix, part.suffix);
    let mut entries = unit.entries_at_offset(part.at)?;
    let Some(root) = entries.next_dfs()? else {
        return Ok(());
    };
    let root_depth = root.depth();
    let root_name = borrowed(dwarf, unit, root, dw::DW_AT_name);
    let is_future = root_name.is_some_and(|name| name.starts_with(FUTURE));
    // Depths of the innermost part with variants and of the variant.
    let mut variant = None;
    while let Some(entry) = entries.next_dfs()? {
        let depth = entry.depth() - root_depth;
        if depth <= 0 {
            break;
        }
        if variant.is_some_and(|around| depth <= around) {
            variant = None;
        }
        if entry.tag() == dw::DW_TAG_variant {
            variant = Some(depth);
        }
        let of_variant = variant.is_some_and(|around| depth == around + 1);
        // Types that are declared within this one have members of their own.
        let own = depth == 1 || of_variant;
        // Static members of C++ are variables.
        let is_static = entry.attr(dw::DW_AT_external).is_some();
        if entry.tag() != dw::DW_TAG_member || !own || is_static {
            continue;
        }
        let Some(kind) = type_of(unit, entry) else {
            continue;
        };
        let offset = entry.attr_value(dw::DW_AT_data_member_location);
        let offset = offset.and_then(|offset| offset.udata_value()).unwrap_or(0);
        let name = name_of(dwarf, unit, entry).unwrap_or_default();
        // Those of tuples are written as numbers.
        let name = name.strip_prefix("__").unwrap_or(&name);
        let start = part.start.saturating_add(offset);
        let mut inner = part;
        (inner.at, inner.start, inner.wraps) = (kind, start, false);
        let own_name = name_of(dwarf, unit, &unit.entry(kind)?).unwrap_or_default();
        if of_variant && is_future {
            let suffix = match &*own_name {
                "Returned" | "Panicked" => continue,
                "Unresumed" => CAPTURED.to_owned(),
                _ => format!("{AWAIT}{})", declared_at(dwarf, unit, entry)),
            };
            (inner.prefix, inner.suffix) = ("", &suffix);
            members(dwarf, unit, inner, fields)?;
            continue;
        }
        if of_variant {
            let prefix = &format!("{prefix}{name}.");
            members(dwarf, unit, Part { prefix, ..inner }, fields)?;
            continue;
        }
        if part.wraps && WRAPPED.contains(&name) {
            let before = fields.len();
            members(dwarf, unit, inner, fields)?;
            if fields.len() > before {
                continue;
            }
        }
        let type_name = type_name(dwarf, unit, kind, MAX_DEPTH)?;
        let size = size(unit, kind, MAX_DEPTH)?;
        let is_array = unit.entry(kind)?.tag() == dw::DW_TAG_array_type;
        let is_followed = part.depth < MAX_FUTURES && fields.len() < MAX_FIELDS;
        if size >= LARGE && is_followed && own_name.contains(FUTURE) {
            let (before, prefix) = (fields.len(), format!("{prefix}{name}."));
            (inner.prefix, inner.depth) = (&prefix, part.depth + 1);
            members(dwarf, unit, inner, fields)?;
            if fields.len() > before {
                continue;
            }
        }
        // What it was made with is held to the end.
        let captured = |it: &Field| {
            suffix.starts_with(AWAIT)
                && it.offset == start
                && it.name.strip_suffix(CAPTURED) == Some(name)
        };
        if (size > 0 || is_array) && !fields.iter().any(captured) {
            let name = format!("{prefix}{name}{suffix}");
            fields.push(Field {
                name,
                type_name,
                offset: start,
                size,
            });
        }
    }
    Ok(())
}

/// The last part of the file and the line of an entry.
fn declared_at(dwarf: &Dwarf<'_>, unit: &Unit<'_>, entry: &Entry<'_>) -> String {
    let number = |name| entry.attr_value(name).and_then(|it| it.udata_value());
    let line = number(dw::DW_AT_decl_line).unwrap_or(0);
    let file = || {
        let AttributeValue::FileIndex(file) = entry.attr_value(dw::DW_AT_decl_file)? else {
            return None;
        };
        let file = unit.line_program.as_ref()?.header().file(file)?;
        let path = dwarf.attr_string(unit, file.path_name()).ok()?;
        path.to_string_lossy().rsplit('/').next().map(str::to_owned)
    };
    format!("{}:{line}", file().unwrap_or_default())
}

/// What C writes before the name of a type of this kind.
pub(super) fn keyword(tag: gimli::DwTag) -> &'static str {
    match tag {
        dw::DW_TAG_structure_type => "struct ",
        dw::DW_TAG_union_type => "union ",
        dw::DW_TAG_enumeration_type => "enum ",
        _ => "",
    }
}

/// The name of the type at `at` as its user writes it.
pub(super) fn type_name(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    at: UnitOffset,
    depth: usize,
) -> gimli::Result<String> {
    let mut entries = unit.entries_at_offset(at)?;
    let Some(entry) = entries.next_dfs()? else {
        return Ok(String::new());
    };
    if let Some(name) = name_of(dwarf, unit, entry) {
        let root = unit.entry(unit.header.root_offset())?;
        let language = root.attr_value(dw::DW_AT_language);
        let is_c = matches!(language, Some(AttributeValue::Language(it)) if C.contains(&it));
        let keyword = if is_c { keyword(entry.tag()) } else { "" };
        return Ok(format!("{keyword}{}", names::shorten(&normal(&name))));
    }
    let tag = entry.tag();
    let inner = match type_of(unit, entry).filter(|_| depth > 0) {
        Some(inner) => type_name(dwarf, unit, inner, depth - 1)?,
        None => String::from("void"),
    };
    Ok(match tag {
        dw::DW_TAG_pointer_type => format!("{inner} *"),
        dw::DW_TAG_array_type => {
            let each = type_of_array(unit, at)?;
            let len = size(unit, at, MAX_DEPTH)?.checked_div(each).unwrap_or(0);
            format!("[{inner}; {len}]")
        }
        dw::DW_TAG_const_type => format!("const {inner}"),
        // Those without a name.
        _ if !keyword(tag).is_empty() => keyword(tag).trim_end().to_owned(),
        _ => inner,
    })
}

/// Bytes of an element of the array at `at`.
fn type_of_array(unit: &Unit<'_>, at: UnitOffset) -> gimli::Result<u64> {
    match type_of(unit, &unit.entry(at)?) {
        Some(element) => size(unit, element, MAX_DEPTH),
        None => Ok(0),
    }
}
