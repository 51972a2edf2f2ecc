//! An expression in an arena of `bumpalo`, made in the order in which it is evaluated.
//!
//! Its terms are packed already, apart from everything else. A heap of its own packs them in the
//! same order.

use super::mix;
use allocator_api2::boxed::Box as BoxIn;
use bumpalo::Bump;
use ccmalloc::Heap;

pub(super) fn before(size: usize) -> u64 {
    let arena = Bump::new();
    evaluations(make(size as u64, &|term| arena.alloc(term)))
}

pub(super) fn after(size: usize) -> u64 {
    let heap = Heap::new().expect("memory");
    // The heap frees all terms at once, as the arena does.
    evaluations(make(size as u64, &|term| {
        BoxIn::leak(BoxIn::new_in(term, &heap))
    }))
}

enum Term<'a> {
    Number(u64),
    Sum([&'a Term<'a>; 2]),
}

fn make<'a>(terms: u64, new: &impl Fn(Term<'a>) -> &'a mut Term<'a>) -> &'a Term<'a> {
    new(match terms {
        0..3 => Term::Number(terms),
        _ => Term::Sum([make(terms / 3, new), make(terms - terms / 3 - 1, new)]),
    })
}

fn evaluations(root: &Term<'_>) -> u64 {
    (0..60).fold(0, |sum, round| mix(sum, evaluate(root, round)))
}

fn evaluate(term: &Term<'_>, round: u64) -> u64 {
    match term {
        Term::Number(number) => number ^ round,
        Term::Sum([a, b]) => mix(evaluate(a, round), evaluate(b, round)),
    }
}
