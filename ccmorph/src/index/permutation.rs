//! Where each item went.

use crate::prefetch;

/// A renumbering of `0..len()`: each item of a slice goes to a place of its own.
///
/// # Examples
/// ```
/// # let mut nodes = vec![(30, 1), (10, 2), (20, u32::MAX)];
/// # let morph = ccmorph::Morph::new();
/// # let report = morph.run_slice(&mut nodes, &mut 0_u32, |node, visit| visit.child(&mut node.1))?;
/// // After `nodes` was morphed, an array that runs beside it follows:
/// let mut names = ["thirty", "ten", "twenty"];
/// report.permutation.apply(&mut names);
/// // An index that is kept somewhere else is looked up:
/// let ten = report.permutation.new_of(1);
/// assert_eq!((nodes[ten].0, names[ten]), (10, "ten"));
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    // Invariant: equally long, fewer than u32::MAX, and inverse to each other.
    pub(super) new_of: Box<[u32]>,
    old_of: Box<[u32]>,
}

impl Permutation {
    /// From what lies where in the end: each number below `old_of.len()` is there once. O(n).
    pub(super) fn from_old_of(old_of: Vec<u32>) -> Permutation {
        const NOWHERE: u32 = u32::MAX;
        let mut new_of = vec![NOWHERE; old_of.len()];
        for (new, &old) in (0..NOWHERE).zip(&old_of) {
            new_of[old as usize] = new;
        }
        debug_assert!(!new_of.contains(&NOWHERE), "an item has no place");
        Permutation {
            new_of: new_of.into(),
            old_of: old_of.into(),
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.new_of.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.new_of.is_empty()
    }

    /// The new place of the item that was at `old`. Panics when there was none.
    pub fn new_of(&self, old: usize) -> usize {
        self.new_of[old] as usize
    }

    /// The old place of the item that is at `new`. Panics when there is none.
    pub fn old_of(&self, new: usize) -> usize {
        self.old_of[new] as usize
    }

    /// Brings `items` into the new order: what is at `old` goes to
    /// [`new_of(old)`](Permutation::new_of). O(n) swaps, and eight bytes an item of memory.
    ///
    /// # Panics
    /// When there are more or fewer items than [`len`](Permutation::len); nothing has moved then.
    pub fn apply<U>(&self, items: &mut [U]) {
        // Places are filled in their order, so later items can be prefetched. Following the cycles
        // of the permutation takes less memory and several times as long.
        let (own, given) = (self.len(), items.len());
        assert!(
            own == given,
            "a permutation of {own} items cannot be applied to {given}"
        );
        // Where the item is that was at `old`, and which one is at a place, as far as places above
        // `new` go.
        let mut place_of: Vec<u32> = (0..).take(self.len()).collect();
        let mut item_at = place_of.clone();
        for (new, &old) in self.old_of.iter().enumerate() {
            if let Some(&later) = self.old_of.get(new + 2 * prefetch::AHEAD) {
                prefetch::object(&raw const place_of[later as usize], size_of::<u32>());
            }
            if let Some(&later) = self.old_of.get(new + prefetch::AHEAD) {
                let place = place_of[later as usize] as usize;
                prefetch::object(&raw const items[place], size_of::<U>());
                prefetch::object(&raw const item_at[place], size_of::<u32>());
            }
            let place = place_of[old as usize] as usize;
            items.swap(new, place);
            let displaced = item_at[new];
            item_at[place] = displaced;
            place_of[displaced as usize] = u32::try_from(place).unwrap_or(u32::MAX);
        }
    }
}
