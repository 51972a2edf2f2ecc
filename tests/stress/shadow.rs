//! What the allocator must not know: which bytes belong to which object, and what is in them.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Bytes that a bit of [`Claims`] stands for: the allocator promises alignments from here up, so no
/// two objects share them.
const UNIT_BYTES: usize = 8;
/// Bytes of address space that a leaf of [`Claims`] covers.
const LEAF_BYTES: usize = 2 << 20;
const LEAF_WORDS: usize = LEAF_BYTES / UNIT_BYTES / 64;
/// User-space addresses have at most 48 bits.
const LEAVES: usize = (1 << 48) / LEAF_BYTES;

type Leaf = [AtomicU64; LEAF_WORDS];

/// Which 8-byte units of the address space belong to a live object: one bit each, in memory
/// straight from the OS.
pub(crate) struct Claims {
    leaves: &'static [AtomicPtr<Leaf>],
}

/// Zeroed memory for `count` values, for ever. `T` must be valid as zeroes.
fn map<T>(count: usize) -> NonNull<T> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory in use.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            count * size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert_ne!(address, libc::MAP_FAILED, "no address space for the shadow");
    NonNull::new(address.cast()).expect("the kernel maps nothing at 0")
}

impl Claims {
    /// Nothing is claimed.
    pub(crate) fn new() -> Self {
        let leaves = map::<AtomicPtr<Leaf>>(LEAVES);
        // SAFETY: mapped for ever, zeroed, and of this length; zeroes are null pointers.
        let leaves = unsafe { std::slice::from_raw_parts(leaves.as_ptr(), LEAVES) };
        Self { leaves }
    }

    fn leaf(&self, address: usize) -> &Leaf {
        let place = &self.leaves[address / LEAF_BYTES];
        let mut leaf = place.load(Ordering::Acquire);
        if leaf.is_null() {
            let fresh = map::<Leaf>(1).as_ptr();
            leaf = match place.compare_exchange(leaf, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => fresh,
                Err(winner) => {
                    // SAFETY: mapped above, and not shown to another thread.
                    unsafe { libc::munmap(fresh.cast(), size_of::<Leaf>()) };
                    winner
                }
            };
        }
        // SAFETY: mapped for ever; zeroes are atomics.
        unsafe { &*leaf }
    }

    /// Calls `each(word, mask)` for the units of an object.
    fn for_units(&self, address: usize, bytes: usize, mut each: impl FnMut(&AtomicU64, u64)) {
        let mut unit = address / UNIT_BYTES;
        let end = (address + bytes.max(1)).div_ceil(UNIT_BYTES);
        while unit < end {
            let bit = unit % 64;
            let count = (end - unit).min(64 - bit);
            let leaf = self.leaf(unit * UNIT_BYTES);
            each(&leaf[unit / 64 % LEAF_WORDS], (!0 >> (64 - count)) << bit);
            unit += count;
        }
    }

    /// Claims the bytes of a new object.
    ///
    /// # Panics
    /// When one of them is another object's.
    pub(crate) fn claim(&self, address: usize, bytes: usize) {
        self.for_units(address, bytes, |word, mask| {
            let before = word.fetch_or(mask, Ordering::Relaxed);
            let overlap = before & mask;
            assert_eq!(
                overlap, 0,
                "{bytes} bytes at {address:#x} overlap a live object"
            );
        });
    }

    /// Gives up the bytes of an object.
    ///
    /// # Panics
    /// When one of them was not claimed.
    pub(crate) fn disclaim(&self, address: usize, bytes: usize) {
        self.for_units(address, bytes, |word, mask| {
            let before = word.fetch_and(!mask, Ordering::Relaxed);
            let claimed = before & mask;
            assert_eq!(
                claimed, mask,
                "{bytes} bytes at {address:#x} were not all claimed"
            );
        });
    }

    /// How many units are claimed. Goes through all leaves.
    pub(crate) fn count(&self) -> u64 {
        self.leaves
            .iter()
            // SAFETY: null or a leaf, mapped for ever.
            .filter_map(|leaf| unsafe { leaf.load(Ordering::Acquire).as_ref() })
            .flatten()
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum()
    }
}

/// A live object. Its first and last (up to) eight bytes follow from its number.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: Layout,
    /// Number of the thread that made it, modulo the number of makers.
    pub(crate) maker: usize,
    number: u64,
}

// SAFETY: an object is owned by the holder of the value; any thread may free it.
unsafe impl Send for Object {}

impl Object {
    /// Takes charge of a fresh allocation: claims it, and writes its ends.
    ///
    /// # Safety
    /// - `start` was allocated with `layout`, and is used by nothing else, unless the allocator is
    ///   wrong.
    pub(crate) unsafe fn adopt(
        claims: &Claims,
        start: NonNull<u8>,
        layout: Layout,
        maker: usize,
        number: u64,
    ) -> Self {
        let object = Self {
            start,
            layout,
            maker,
            number,
        };
        object.claim(claims);
        object.write_ends();
        object
    }

    fn claim(&self, claims: &Claims) {
        let (address, layout) = (self.start.addr().get(), self.layout);
        assert!(
            address.is_multiple_of(layout.align()),
            "{layout:?} at {address:#x}"
        );
        claims.claim(address, layout.size());
    }

    fn disclaim(&self, claims: &Claims) {
        claims.disclaim(self.start.addr().get(), self.layout.size());
    }

    fn pattern(&self) -> [u8; 8] {
        (self.number | 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes()
    }

    fn write_ends(&self) {
        let bytes = self.layout.size();
        let end = bytes.min(8);
        let pattern = self.pattern();
        // The last bytes first: in short objects the ends overlap, and the start is checked.
        for offset in [bytes - end, 0] {
            let from = NonNull::from(&pattern).cast();
            // SAFETY: the object has `bytes` bytes, and `end` of them lie at each end.
            unsafe { self.start.add(offset).copy_from_nonoverlapping(from, end) };
        }
    }

    /// Compares the bytes at `offset` with what was written there.
    ///
    /// # Safety
    /// - They are bytes of the object that were written.
    unsafe fn expect(&self, offset: usize, len: usize) {
        let mut found = [0_u8; 8];
        // SAFETY: the caller's promise; `found` has room for eight bytes, the most that an end has.
        unsafe {
            NonNull::from(&mut found)
                .cast::<u8>()
                .copy_from_nonoverlapping(self.start.add(offset), len);
        };
        let (start, maker) = (self.start, self.maker);
        assert_eq!(
            found[..len],
            self.pattern()[..len],
            "{:?} at {start:?}, made by thread {maker}, has changed at offset {offset}",
            self.layout
        );
    }

    /// Compares the ends with what was written.
    pub(crate) fn check(&self) {
        let bytes = self.layout.size();
        // SAFETY: `write_ends` wrote the first bytes, up to eight.
        unsafe { self.expect(0, bytes.min(8)) };
        if bytes >= 16 {
            // SAFETY: it wrote the last eight as well.
            unsafe { self.expect(bytes - 8, 8) };
        }
    }

    /// Checks the object and frees it.
    pub(crate) fn free(self, claims: &Claims) {
        self.check();
        self.disclaim(claims);
        // SAFETY: allocated with this layout, and given up here.
        unsafe { ccmalloc::cc_dealloc(self.start, self.layout) };
    }

    /// Changes the object's size; returns whether it moved.
    pub(crate) fn resize(
        &mut self,
        claims: &Claims,
        bytes: usize,
        hint: Option<NonNull<u8>>,
    ) -> bool {
        self.check();
        self.disclaim(claims);
        let (before, layout) = (self.start, self.layout);
        // SAFETY: allocated with this layout; replaced by the result.
        let start = unsafe { ccmalloc::cc_realloc(before, layout, bytes, hint) };
        self.start = start.expect("memory");
        self.layout = Layout::from_size_align(bytes, layout.align()).expect("sizes are small");
        self.claim(claims);
        // SAFETY: the start was kept, as far as both sizes reach.
        unsafe { self.expect(0, layout.size().min(bytes).min(8)) };
        self.write_ends();
        self.start != before
    }
}
