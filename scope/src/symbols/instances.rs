//! Arguments of generic functions of Rust whose symbols have none: the older ("legacy") symbols say
//! `Vec<T,A>::push` whatever `T` is, and tell instances apart by a hash.
//!
//! In debug information, the function of such a symbol is called `push<u32, alloc::alloc::Global>`,
//! and has template parameters `T` and `A`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use gimli::UnitOffset;
use gimli::constants as dw;

use super::debug_info::{self, Dwarf, Unit};
use super::generics;

/// Parameters with their arguments, by the symbol of the function.
pub(super) type Instances = HashMap<String, Vec<(String, String)>>;

/// Whether a symbol is of a function of Rust and has parameters in place of arguments.
pub(super) fn is_legacy(symbol: &str) -> bool {
    symbol.starts_with("_ZN") && symbol.contains("$LT$")
}

/// All that the debug information in the file at `path` has.
pub(super) fn read(path: &Path) -> Result<Instances, Box<dyn std::error::Error>> {
    let mut found = Instances::new();
    debug_info::each_unit(path, |dwarf, unit| {
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != dw::DW_TAG_subprogram {
                continue;
            }
            let symbol = debug_info::borrowed(dwarf, unit, entry, dw::DW_AT_linkage_name);
            let is_new = |it: &Cow<'_, str>| is_legacy(it) && !found.contains_key(&**it);
            let Some(symbol) = symbol.filter(is_new) else {
                continue;
            };
            let name = debug_info::name_of(dwarf, unit, entry).unwrap_or_default();
            let arguments = generics::arguments(&name);
            let parameters = parameters(dwarf, unit, entry.offset())?;
            // Else some arguments are numbers, and which ones is not known.
            if !arguments.is_empty() && arguments.len() == parameters.len() {
                found.insert(
                    symbol.into_owned(),
                    parameters.into_iter().zip(arguments).collect(),
                );
            }
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Names of the template parameters of the function at `at`.
fn parameters(dwarf: &Dwarf<'_>, unit: &Unit<'_>, at: UnitOffset) -> gimli::Result<Vec<String>> {
    let mut entries = unit.entries_at_offset(at)?;
    let own = entries.next_dfs()?.map_or(0, |entry| entry.depth());
    let mut parameters = Vec::new();
    while let Some(entry) = entries.next_dfs()?.filter(|entry| entry.depth() > own) {
        if entry.tag() == dw::DW_TAG_template_type_parameter && entry.depth() == own + 1 {
            parameters.extend(debug_info::name_of(dwarf, unit, entry));
        }
    }
    Ok(parameters)
}
