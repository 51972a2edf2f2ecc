//! Accesses to the fields of a type, in all chunks that hold elements of it.

use std::collections::HashMap;

use super::code::Language;
use super::{Context, is_foreign, site_type};
use crate::analyses::fields::{Extent, FieldAccess};
use crate::analyses::replay::trace::Step;
use crate::analyses::types::field_at;
use crate::profile::Type;

/// A larger element has so many lines that their order hardly matters.
const MAX_BYTES: u64 = 4096;
/// Alignments above that of a word are not told by offsets.
const MAX_ALIGN: u64 = 8;

/// A struct that the program waits for.
pub(super) struct Typed<'p> {
    pub(super) of: &'p Type,
    /// Bytes of an element.
    pub(super) size: u64,
    /// As the program calls it.
    pub(super) name: String,
    pub(super) sites: Vec<u32>,
    pub(super) fields: Vec<Extent>,
    pub(super) accesses: Vec<FieldAccess>,
}

impl Typed<'_> {
    /// The name as `struct` declares it.
    pub(super) fn declared(&self) -> String {
        match self.name.split_once('<') {
            Some((name, _)) => format!("{name}<..>"),
            None => self.name.clone(),
        }
    }

    /// Where the chunk begins. Addresses and offsets of a damaged profile do not fit each other.
    pub(super) fn chunk_start(&self, step: &Step) -> u64 {
        step.address.wrapping_sub(u64::from(step.offset))
    }

    /// The element of a chunk, and the offset in it.
    pub(super) fn element(&self, offset: u32) -> (u64, u64) {
        let offset = u64::from(offset);
        (offset / self.size, offset % self.size)
    }

    /// The field at an offset in an element.
    pub(super) fn field(&self, offset: u64) -> Option<usize> {
        let field = field_at(self.of, offset)?;
        self.of
            .fields
            .iter()
            .position(|other| std::ptr::eq(other, field))
    }
}

/// Structs whose fields are known, one behind the other.
pub(super) fn structs<'p>(context: &Context<'p>) -> Vec<Typed<'p>> {
    let mut found: Vec<Typed<'p>> = Vec::new();
    for site in context.waiting_sites() {
        let type_id = context
            .profile
            .sites
            .get(site as usize)
            .and_then(|it| it.type_id);
        let of = type_id.and_then(|id| context.profile.types.get(id as usize));
        let Some((of, name)) = of.zip(site_type(context.profile, site)) else {
            continue;
        };
        let size = of.size.unwrap_or(0);
        let language = Language::of(context.profile, &[site]);
        match found.iter_mut().find(|it| it.of.name == of.name) {
            Some(typed) => typed.sites.push(site),
            None if is_struct(of, size, language) => found.push(Typed {
                of,
                size,
                name: element_name(name),
                sites: vec![site],
                fields: of.fields.iter().map(extent).collect(),
                accesses: Vec::new(),
            }),
            None => {}
        }
    }
    let of_site: HashMap<u32, usize> = { found.iter().enumerate() }
        .flat_map(|(at, typed)| typed.sites.iter().map(move |&site| (site, at)))
        .collect();
    for (time, step) in (0..).zip(&context.trace.steps) {
        let site = context.trace.site(step);
        let Some(typed) = of_site.get(&site).map(|&at| &mut found[at]) else {
            continue;
        };
        let (element, offset) = typed.element(step.offset);
        if let Some(field) = typed.field(offset) {
            // Elements of one chunk are objects of their own.
            let object = u64::from(step.object) << 32 | element;
            typed.accesses.push(FieldAccess {
                instance: site,
                object,
                field,
                time,
            });
        }
    }
    found
}

/// No enum, whose fields lie over each other, no tuple, and no type of the standard library's. What
/// is in an `Rc` or `Arc` has the counters before its own fields, which nobody can move.
fn is_struct(of: &Type, size: u64, language: Language) -> bool {
    let mut end = 0;
    let is_behind = of.fields.iter().all(|field| {
        let is_behind = field.offset >= end && field.size > 0;
        end = field.offset.saturating_add(field.size);
        // Those of variants have dots, and those of tuples are numbers.
        is_behind && !field.name.contains('.') && !field.name.starts_with(char::is_numeric)
    });
    let is_placed = ["Box<", "Vec<"].iter().any(|it| of.name.starts_with(it));
    let name = element_name(&of.name);
    let is_own = (is_placed || !of.name.contains('<')) && !is_foreign(language, &name);
    is_behind && is_own && of.fields.len() > 1 && (1..=MAX_BYTES).contains(&size) && end <= size
}

fn extent(field: &crate::profile::Field) -> Extent {
    let bits = field
        .size
        .trailing_zeros()
        .min(field.offset.trailing_zeros());
    Extent {
        size: field.size,
        align: 1u64.checked_shl(bits).unwrap_or(MAX_ALIGN).min(MAX_ALIGN),
    }
}

/// `Node` for `Box<Node>` and `Vec<Box<Node>>`'s own nodes.
fn element_name(name: &str) -> String {
    let inner = name
        .split_once('<')
        .and_then(|(_, rest)| rest.strip_suffix('>'));
    inner.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Field;

    fn is_split(name: &str, fields: &[(&str, u64)]) -> bool {
        let field = |&(name, offset): &(&str, u64)| Field {
            name: name.to_owned(),
            type_name: "u64".to_owned(),
            offset,
            size: 8,
        };
        let of = Type {
            name: name.to_owned(),
            size: Some(24),
            fields: fields.iter().map(field).collect(),
        };
        is_struct(&of, 24, Language::Rust)
    }

    #[test]
    fn only_structs_of_the_program_have_fields_to_move() {
        let three = [("a", 0), ("b", 8), ("c", 16)];
        for name in ["Node", "Box<Node>", "Vec<Vec3>", "Vec<Node<u64>>"] {
            assert!(is_split(name, &three), "{name}");
        }
        for name in [
            "Vec<Vec<u64>>",
            "Box<VecDeque<u64>>",
            "Rc<Node>",
            "Option<Box<Node>>",
        ] {
            assert!(!is_split(name, &three), "{name}");
        }
        // A tuple, an enum, an overlap, and what lies beyond the end or everything.
        assert!(!is_split("Vec<(u64, u64)>", &[("0", 0), ("1", 8)]));
        assert!(!is_split("Node", &[("A.0", 0), ("A.1", 8)]));
        assert!(!is_split("Node", &[("a", 0), ("b", 4)]));
        assert!(!is_split("Node", &[("a", 0), ("b", 20)]));
        assert!(!is_split("Node", &[("a", 0), ("b", u64::MAX)]));
    }
}
