//! Types of global variables.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gimli::constants as dw;
use gimli::{AttributeValue, Operation, UnitOffset};

use super::layout::{self, Layout, MAX_DEPTH};
use crate::symbols::debug_info::{self, Dwarf, Entry, Unit};

/// Name and layout of a variable's type; of an array's elements.
type Found = (String, Layout);

/// The types of those variables in the file at `path` whose addresses are `wanted`.
pub(super) fn find(
    path: &Path,
    wanted: &HashSet<u64>,
) -> Result<HashMap<u64, Found>, Box<dyn std::error::Error>> {
    let mut found = HashMap::new();
    debug_info::each_unit(path, |dwarf, unit| {
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() == dw::DW_TAG_variable
                && let Some(address) = address(dwarf, unit, entry)
                && wanted.contains(&address)
                && let Some(kind) = type_of(unit, entry)?
            {
                let element = element(unit, kind)?;
                let found_type = (
                    layout::type_name(dwarf, unit, element, MAX_DEPTH)?,
                    layout::layout(dwarf, unit, element, false)?,
                );
                found.insert(address, found_type);
            }
        }
        Ok(found.len() < wanted.len())
    })?;
    Ok(found)
}

/// The address of a variable that has the same one all the time.
fn address(dwarf: &Dwarf<'_>, unit: &Unit<'_>, entry: &Entry<'_>) -> Option<u64> {
    let AttributeValue::Exprloc(place) = entry.attr_value(dw::DW_AT_location)? else {
        return None;
    };
    let mut operations = place.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(address)
}

/// The type of a variable, which may have been declared elsewhere.
fn type_of(unit: &Unit<'_>, entry: &Entry<'_>) -> gimli::Result<Option<UnitOffset>> {
    if let Some(kind) = layout::type_of(unit, entry) {
        return Ok(Some(kind));
    }
    let declared = [dw::DW_AT_specification, dw::DW_AT_abstract_origin];
    match declared.iter().find_map(|&name| entry.attr_value(name)) {
        Some(AttributeValue::UnitRef(at)) => Ok(layout::type_of(unit, &unit.entry(at)?)),
        _ => Ok(None),
    }
}

/// What an array of arrays of the type at `at` is made of; `at` if it is none.
fn element(unit: &Unit<'_>, at: UnitOffset) -> gimli::Result<UnitOffset> {
    let mut at = at;
    for _ in 0..MAX_DEPTH {
        let array = unit.entry(layout::strip(unit, at, true)?)?;
        match layout::type_of(unit, &array) {
            Some(inner) if array.tag() == dw::DW_TAG_array_type => at = inner,
            _ => break,
        }
    }
    layout::strip(unit, at, false)
}
