//! Accesses to the fields of a type, in all chunks that hold elements of it.

use std::collections::HashMap;

use super::{Context, site_type};
use crate::analyses::fields::{Extent, FieldAccess};
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
    /// Reads and writes by field.
    pub(super) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.fields.len()];
        self.accesses
            .iter()
            .for_each(|access| counts[access.field] += 1);
        counts
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
        match found.iter_mut().find(|it| it.of.name == of.name) {
            Some(typed) => typed.sites.push(site),
            None if is_struct(of, size) => found.push(Typed {
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

/// No enum, whose fields lie over each other, and no type of the standard library's.
fn is_struct(of: &Type, size: u64) -> bool {
    let mut end = 0;
    let is_behind = of.fields.iter().all(|field| {
        let is_behind = field.offset >= end && field.size > 0;
        end = field.offset + field.size;
        is_behind && !field.name.contains('.')
    });
    let is_own = ["Box<", "Vec<", "Rc<", "Arc<"]
        .iter()
        .any(|it| of.name.starts_with(it))
        || !of.name.contains('<');
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
