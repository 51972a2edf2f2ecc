//! Reads debug information entry by entry.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use gimli::constants as dw;
use gimli::{EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection};

pub(crate) type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
pub(crate) type Unit<'d> = gimli::Unit<Slice<'d>>;
pub(crate) type Dwarf<'d> = gimli::Dwarf<Slice<'d>>;
pub(crate) type Entry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

/// Calls `visit` for each unit in the file at `path`, until it returns false.
pub(crate) fn each_unit(
    path: &Path,
    mut visit: impl for<'d> FnMut(&Dwarf<'d>, &Unit<'d>) -> gimli::Result<bool>,
) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    // SAFETY: nobody is expected to change the executable meanwhile; whoever does ends this
    // process, as with every other tool that maps executables.
    let map = unsafe { memmap2::Mmap::map(&file) }?;
    let object = object::File::parse(&*map)?;
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, object::Error> {
        // To decompress the others takes as much time and memory again.
        let is_read = matches!(
            id,
            gimli::SectionId::DebugAbbrev
                | gimli::SectionId::DebugAddr
                | gimli::SectionId::DebugInfo
                | gimli::SectionId::DebugLine
                | gimli::SectionId::DebugLineStr
                | gimli::SectionId::DebugRanges
                | gimli::SectionId::DebugRngLists
                | gimli::SectionId::DebugStr
                | gimli::SectionId::DebugStrOffsets
        );
        let section = is_read.then(|| object.section_by_name(id.name())).flatten();
        section.map_or(Ok(Cow::Borrowed(&[][..])), |section| {
            section.uncompressed_data()
        })
    };
    let sections = gimli::DwarfSections::load(load)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, RunTimeEndian::Little));
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        if !visit(&dwarf, &unit)? {
            break;
        }
    }
    Ok(())
}

/// The name of an entry.
pub(crate) fn name_of(dwarf: &Dwarf<'_>, unit: &Unit<'_>, entry: &Entry<'_>) -> Option<String> {
    text(dwarf, unit, entry, dw::DW_AT_name)
}

/// The text of an attribute.
pub(crate) fn text(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    entry: &Entry<'_>,
    name: gimli::DwAt,
) -> Option<String> {
    let text = dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// The same where most are only looked at.
pub(crate) fn borrowed<'d>(
    dwarf: &Dwarf<'d>,
    unit: &Unit<'d>,
    entry: &Entry<'d>,
    name: gimli::DwAt,
) -> Option<Cow<'d, str>> {
    let text = dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
    Some(String::from_utf8_lossy(text.slice()))
}
