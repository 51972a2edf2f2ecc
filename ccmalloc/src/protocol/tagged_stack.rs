//! A lock-free stack of nodes that live for ever and change hands.
//!
//! The head holds the address of the top node and a counter of changes, so that a compare-exchange
//! fails when the head has left and returned in between (the ABA problem). Nodes are aligned to
//! 32 KiB and user-space addresses have 47 bits on x86-64, which leaves 32 bits for the counter (31
//! on other machines).
//!
//! The counter wraps. The problem returns only if a thread is stopped between its load of the head
//! and its compare-exchange while the others change the head exactly a multiple of 2^31 or 2^32
//! times, and leave the same node on top. The head changes when threads start and end, and at most
//! 128 times when a chunk is mapped.
//!
//! Nodes are never unmapped, so reading the link of one that another thread has just taken is
//! harmless.

use core::marker::PhantomData;
use core::ptr::null;

use crate::primitive::{AtomicPtr, AtomicU64, Ordering, constructor};

/// Alignment of nodes.
const ALIGN: u64 = 32 * 1024;
/// Addresses of nodes are below this one: user space.
const ADDRESS_END: u64 = if cfg!(target_arch = "x86_64") {
    1 << 47
} else {
    1 << 48
};
/// Bits of a head that are the address of a node. The others count changes.
const ADDRESS: u64 = ADDRESS_END - ALIGN;
const _: () = assert!((!ADDRESS).count_ones() >= 31);

/// Has a link, which belongs to the stack while the node is on it, and to the node's owner while it
/// is not.
pub(crate) trait Linked: Sized {
    /// The link.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// See the module's documentation. The thread that pops a node owns it until it is pushed again.
pub(crate) struct TaggedStack<N> {
    head: AtomicU64,
    _nodes: PhantomData<AtomicPtr<N>>,
}

/// The node that `head` names, or null.
///
/// A pointer, not a reference: only what `pop` takes has been acquired from the thread that wrote
/// it.
fn node_of<N>(head: u64) -> *mut N {
    let address = usize::try_from(head & ADDRESS).unwrap_or(0);
    core::ptr::with_exposed_provenance_mut(address)
}

/// The head that follows `old` and names the node at `address`.
fn successor(old: u64, address: usize) -> u64 {
    // With all bits of the address set, a carry goes from the low part of the counter to the high
    // one.
    let count = (old | ADDRESS).wrapping_add(1) & !ADDRESS;
    address as u64 & ADDRESS | count
}

impl<N: Linked> TaggedStack<N> {
    constructor! {
        /// An empty one.
        pub(crate) fn new() -> Self {
            Self { head: AtomicU64::new(0), _nodes: PhantomData }
        }
    }

    /// Puts `node` on top. Does nothing if it lies beyond the user-space addresses that this
    /// machine is known to have.
    ///
    /// # Safety
    /// - `node` is aligned to 32 KiB, and lives as long as the stack is used.
    /// - It is on no stack, and the caller owns it: this call gives it to the thread that pops it.
    pub(crate) unsafe fn push(&self, node: &N) {
        let address = (&raw const *node).expose_provenance();
        if address as u64 & !ADDRESS != 0 {
            // Beyond what a head can name: no thread gets the node again.
            return;
        }
        // Release: the thread that takes the node sees what its last owner wrote.
        let _ = (self.head).fetch_update(Ordering::Release, Ordering::Relaxed, |head| {
            node.link().store(node_of(head), Ordering::Relaxed);
            Some(successor(head, address))
        });
    }

    /// Takes the node on top. The caller owns it from then on, with all that its owners before did
    /// to it.
    pub(crate) fn pop(&self) -> Option<&N> {
        let next = |head| {
            // SAFETY: a head names no node (null) or one that was pushed, whose address was exposed
            // then, and which lives: `push`'s contract. Every change of the head is a
            // read-modify-write, so that this load, an acquire, sees all that was done before the
            // push.
            let top: &N = unsafe { node_of::<N>(head).as_ref() }?;
            // If another thread has taken the node since, this may be any link, and the exchange
            // fails.
            Some(successor(head, top.link().load(Ordering::Relaxed).addr()))
        };
        let head = (self.head)
            .fetch_update(Ordering::Acquire, Ordering::Acquire, next)
            .ok()?;
        // SAFETY: null or the node that was on top, which lives as long as the stack (`push`'s
        // contract).
        unsafe { node_of::<N>(head).as_ref() }
    }

    /// Takes up to `count` nodes, calls `each` with every one of them until it returns true, and
    /// puts back all but the one for which it did: the caller owns that. Others find the stack
    /// without them meanwhile.
    pub(crate) fn visit_until<'a>(&'a self, count: usize, mut each: impl FnMut(&'a N) -> bool) {
        let mut taken: *const N = null();
        for _ in 0..count {
            let Some(node) = self.pop() else { break };
            if each(node) {
                break;
            }
            // Put aside, or the next pop would find it again.
            node.link().store(taken.cast_mut(), Ordering::Relaxed);
            taken = node;
        }
        // SAFETY: null or a node put aside above, owned by this thread; nodes live for ever.
        while let Some(node) = unsafe { taken.as_ref() } {
            taken = node.link().load(Ordering::Relaxed);
            // SAFETY: it was on this stack, so it is aligned and lives for ever; this thread has
            // popped it.
            unsafe { self.push(node) };
        }
    }
}
