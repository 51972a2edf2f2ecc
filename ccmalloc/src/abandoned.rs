//! Heaps whose threads have ended: a lock-free stack, of which `first_class` has another.
//!
//! The head holds the address of the top heap and a counter of changes, so that a compare-exchange fails when the head has
//! left and returned in between (the ABA problem). Heaps are page-aligned and addresses have at most 48 bits, which leaves 28
//! bits for the counter: a thread would have to sleep through exactly a multiple of 268 million changes. Heaps are never
//! unmapped, so that reading the link of one that another thread has just taken is harmless.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::heap::{ALL_HEAPS, HEAP_ALIGN_BYTES, Heap, Own};
use crate::sys;

/// Bits of a head that are the address of a heap.
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
/// How many heaps one thread looks through for memory before it maps more.
const RECLAIM_HEAPS_MAX: usize = 64;

/// A stack of heaps that belong to nobody. A heap is in one stack at most.
pub(crate) struct Stack(AtomicU64);

/// Heaps whose threads have ended.
static ABANDONED: Stack = Stack::new();

/// The heap that `head` names, or null.
///
/// A pointer, not a reference: only what `pop` takes has been acquired from the thread that wrote it.
fn heap_of(head: u64) -> *mut Heap {
    let address = usize::try_from(head & ADDRESS).unwrap_or(0);
    core::ptr::with_exposed_provenance_mut(address)
}

/// The head that follows `old` and names the heap at `address`.
fn successor(old: u64, address: usize) -> u64 {
    let low = old.wrapping_add(1) & 0xfff;
    let high = if low == 0 {
        (old >> 48).wrapping_add(1)
    } else {
        old >> 48
    };
    address as u64 & ADDRESS | high << 48 | low
}

impl Stack {
    /// A stack of none.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds a heap, which the caller owns no more from then on.
    pub(crate) fn push(&self, heap: &'static Heap) {
        let address = (&raw const *heap).expose_provenance();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            heap.next_abandoned.store(heap_of(head), Ordering::Relaxed);
            // Release: whoever takes the heap sees what its last owner wrote.
            let new = successor(head, address);
            match (self.0).compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the heap that was added last; the caller owns it from then on.
    pub(crate) fn pop(&self) -> Option<&'static Heap> {
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: a head names no heap (null) or one that was pushed, whose address was exposed then; heaps live for ever. Every
            // change of the head is a read-modify-write, so that this load, an acquire, sees all that was done before the push.
            let top = unsafe { heap_of(head).as_ref() }?;
            let new = successor(head, top.next_abandoned.load(Ordering::Relaxed).addr());
            match (self.0).compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(top),
                Err(now) => head = now,
            }
        }
    }
}

impl Own<'static> {
    /// A heap for this thread: one whose thread has ended, or a new one. `None` when the OS refuses memory.
    pub(crate) fn acquire() -> Option<Self> {
        if let Some(heap) = ABANDONED.pop() {
            // SAFETY: it was on the stack of abandoned heaps, so no thread owned it, and it is off the stack now.
            let own = unsafe { Own::new(heap) };
            own.collect_remote();
            return Some(own);
        }
        Self::map()
    }

    /// A new heap. `None` when the OS refuses memory.
    pub(crate) fn map() -> Option<Self> {
        // Not written to: zero bytes are `Heap::new()`, and a thread touches the bins of the classes that it uses.
        let place: NonNull<Heap> = sys::map_aligned(size_of::<Heap>(), HEAP_ALIGN_BYTES)?.cast();
        // SAFETY: freshly mapped, aligned, valid as all zero bytes are, and never unmapped.
        let heap: &'static Heap = unsafe { place.as_ref() };
        let mut head = ALL_HEAPS.load(Ordering::Relaxed);
        loop {
            heap.next_heap.store(head, Ordering::Relaxed);
            let new = place.as_ptr();
            match ALL_HEAPS.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        // SAFETY: nobody else knows of it but readers of the counters.
        Some(unsafe { Own::new(heap) })
    }

    /// Gives the heap up at the end of its thread: what is empty goes back to the OS, the rest waits for another thread.
    pub(crate) fn abandon(self) {
        self.collect_remote();
        self.trim();
        ABANDONED.push(self.heap());
    }
}

impl Own<'_> {
    /// Lets go of every slab, page and chunk that holds no object.
    fn trim(self) {
        self.trim_slabs();
        self.trim_pages();
        self.trim_chunks();
    }
}

/// Gives back to the OS what other threads have freed in heaps without a thread: called before more memory is mapped.
pub(crate) fn reclaim() {
    let mut taken: Option<&'static Heap> = None;
    for _ in 0..RECLAIM_HEAPS_MAX {
        let Some(heap) = ABANDONED.pop() else { break };
        if !heap.dirty.0.load(Ordering::Relaxed).is_null() {
            // SAFETY: it was on the stack of abandoned heaps, so no thread owned it, and it is off the stack now.
            let own = unsafe { Own::new(heap) };
            own.collect_remote();
            own.trim();
        }
        // Put aside, or the next turn would find it again.
        let next = taken.map_or(null_mut(), |next| (&raw const *next).cast_mut());
        heap.next_abandoned.store(next, Ordering::Relaxed);
        taken = Some(heap);
    }
    while let Some(heap) = taken {
        // SAFETY: null or a heap put aside above; heaps live for ever.
        taken = unsafe { heap.next_abandoned.load(Ordering::Relaxed).as_ref() };
        ABANDONED.push(heap);
    }
}
