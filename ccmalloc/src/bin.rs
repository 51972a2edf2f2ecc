//! Bins: the free list of each size class, and what is at hand in it.

use core::cell::Cell;
use core::ptr::null_mut;

use crate::geometry::SLOT_BYTES;
use crate::size_class::CLASSES;

/// Bytes of a bin; a power of two, so that a class's number leads to its bin by a shift.
pub(crate) const BIN_BYTES: usize = 2048;
/// Alignment of an arena: the address of a bin leads to its arena and to its class.
pub(crate) const ARENA_ALIGN_BYTES: usize = 128 * 1024;
/// Bytes of a bin in front of the objects at hand.
const BIN_HEADER_BYTES: usize = 3 * size_of::<usize>();
/// Bytes of a place for an object at hand.
const PLACE_BYTES: usize = size_of::<*mut u8>();
/// Places in a bin, the one that is never filled included.
const PLACES: usize = (BIN_BYTES - BIN_HEADER_BYTES) / PLACE_BYTES;
/// [`Bin::top`] when every place is filled.
const TOP_FULL: usize = (PLACES - 1) * PLACE_BYTES;
/// [`Bin::limit`] of objects that are larger than [`LONG_BYTES_MAX`]: an empty slab has to look
/// through all places.
const SHORT: usize = 62 * PLACE_BYTES;
const LONG_BYTES_MAX: usize = 1024;

const _: () = assert!(CLASSES * BIN_BYTES <= ARENA_ALIGN_BYTES);

/// Where a class allocates from at the moment: the free objects at hand.
///
/// Invariant: each object at hand starts in a slab of this class and arena, whose kind is `ACTIVE`
/// or `LISTED`; its bit is clear, and it is at hand once.
#[repr(C, align(2048))]
pub(crate) struct Bin {
    /// Where the latest object at hand is, in bytes from the first place: from 0 in steps of
    /// [`PLACE_BYTES`] to [`TOP_FULL`].
    top: Cell<usize>,
    /// The largest `top` that frees lead to; 0 until the bin is first filled, which is before an
    /// object of its class can be freed.
    limit: Cell<usize>,
    /// Word of the active slab's map from which on to look for free objects.
    pub(crate) cursor: Cell<usize>,
    /// The objects at hand are those from the latest down to the first null pointer; the first
    /// place always holds one.
    at_hand: [Cell<*mut u8>; PLACES],
}

const _: () = assert!(size_of::<Bin>() == BIN_BYTES);

impl Bin {
    pub(crate) const fn new() -> Self {
        Self {
            top: Cell::new(0),
            limit: Cell::new(0),
            cursor: Cell::new(0),
            at_hand: [const { Cell::new(null_mut()) }; PLACES],
        }
    }

    /// The place behind `bytes` bytes of others, of which the first is never filled.
    ///
    /// # Safety
    /// - `bytes` is a multiple of [`PLACE_BYTES`], and at most [`TOP_FULL`].
    #[inline]
    unsafe fn place(&self, bytes: usize) -> &Cell<*mut u8> {
        debug_assert!(bytes <= TOP_FULL && bytes.is_multiple_of(PLACE_BYTES));
        // SAFETY: the caller promises a multiple of PLACE_BYTES up to TOP_FULL: one of the PLACES.
        unsafe { &*self.at_hand.as_ptr().byte_add(bytes) }
    }

    /// Takes the latest object at hand, whose bit is still clear; null when there is none.
    #[inline]
    pub(crate) fn take(&self) -> *mut u8 {
        let top = self.top.get();
        // SAFETY: `top` is a multiple of PLACE_BYTES, from 0 to TOP_FULL.
        let object = unsafe { self.place(top) }.get();
        if !object.is_null() {
            // The first place is always null, so `top` is not 0.
            self.top.set(top - PLACE_BYTES);
        }
        object
    }

    /// Keeps an object at hand, whose bit has just been cleared, if there is room.
    #[inline]
    pub(crate) fn put(&self, object: *mut u8) {
        let top = self.top.get();
        if top < self.limit.get() {
            // SAFETY: `top` is a multiple of PLACE_BYTES, below the limit, which is 0 or at most
            // TOP_FULL and such a multiple: so the next one is at most the limit.
            unsafe { self.place(top + PLACE_BYTES) }.set(object);
            self.top.set(top + PLACE_BYTES);
        }
    }

    /// Begins to put objects of `bytes` at hand when none is.
    pub(crate) fn filling(&self, bytes: usize) -> Filling<'_> {
        let limit = if bytes <= LONG_BYTES_MAX {
            TOP_FULL
        } else {
            SHORT
        };
        self.limit.set(limit);
        Filling {
            bin: self,
            next: limit / PLACE_BYTES / 2,
            most: limit / PLACE_BYTES / 2,
            enough: limit / PLACE_BYTES / 4,
        }
    }

    /// The places of the objects at hand, the latest last, and the number of places below them.
    fn filled(&self) -> (&[Cell<*mut u8>], usize) {
        let end = self.top.get() / PLACE_BYTES + 1;
        let places = self.at_hand.get(..end).unwrap_or_default();
        let below = places
            .iter()
            .rposition(|place| place.get().is_null())
            .map_or(end, |null| null + 1);
        (places.get(below..).unwrap_or_default(), below)
    }

    /// Addresses of the objects at hand. For checks.
    pub(crate) fn objects_at_hand(&self) -> impl Iterator<Item = usize> {
        self.filled().0.iter().map(|place| place.get().addr())
    }

    /// Forgets all objects at hand, before all slots are given back.
    pub(crate) fn forget_all(&self) {
        self.top.set(0);
        self.cursor.set(0);
    }

    /// Forgets the objects at hand that lie in the slot at `base`, before it is given back.
    pub(crate) fn forget_slot(&self, base: usize) {
        let (places, below) = self.filled();
        let mut kept = 0;
        for place in places {
            if place.get().addr() & !(SLOT_BYTES - 1) != base
                && let Some(to) = places.get(kept)
            {
                to.set(place.get());
                kept += 1;
            }
        }
        self.top.set((below + kept - 1) * PLACE_BYTES);
    }
}

/// A bin that is being filled, up to half. Objects are added in the order in which they are to be
/// taken.
pub(crate) struct Filling<'a> {
    bin: &'a Bin,
    /// The place of the next object; 0 when there is no room left.
    next: usize,
    /// That of the first.
    most: usize,
    /// Where to stop.
    enough: usize,
}

// Room for the objects of one more word of a map.
const _: () = assert!(TOP_FULL / PLACE_BYTES / 4 >= 63 && SHORT / PLACE_BYTES / 4 >= 1);

impl Filling<'_> {
    /// Whether that is enough. If not, there is room for the objects of one more word of a map.
    #[inline]
    pub(crate) fn is_enough(&self) -> bool {
        self.next <= self.enough
    }

    /// Adds a free object of the active slab.
    ///
    /// # Safety
    /// - Since [`is_enough`](Self::is_enough) was false, or from the start, only objects have been
    ///   added that start in one word of a map, this one included.
    #[inline]
    pub(crate) unsafe fn add(&mut self, object: *mut u8) {
        debug_assert!(self.next > 0);
        // SAFETY: `next` is at most half of a limit. It is more than 0: when `is_enough` was false
        // there was room for all objects that start in one word, and the caller adds no others.
        unsafe { self.bin.place(self.next * PLACE_BYTES) }.set(object);
        self.next -= 1;
    }

    /// Puts the objects at hand, the first on top, and returns how many there are.
    pub(crate) fn finish(self) -> usize {
        let count = self.most - self.next;
        if count > 0 {
            if let Some(below) = self.bin.at_hand.get(self.next) {
                below.set(null_mut());
            }
            self.bin.top.set(self.most * PLACE_BYTES);
        }
        count
    }
}
