//! A lock-free stack of nodes that live for ever and change hands.
//!
//! The head holds the address of the top node and a counter of changes, so that a compare-exchange fails when the head has
//! left and returned in between (the ABA problem). Nodes are page-aligned and addresses have at most 48 bits, which leaves 28
//! bits for the counter: a thread would have to sleep through exactly a multiple of 268 million changes. Nodes are
//! never unmapped, so that reading the link of one that another thread has just taken is harmless.

use core::marker::PhantomData;
use core::ptr::null;

use crate::primitive::{AtomicPtr, AtomicU64, Ordering, constructor};

/// Bits of a head that are the address of a node.
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;

/// Has a link, which belongs to the stack while the node is on it, and to the node's owner while it is not.
pub(crate) trait Linked: Sized {
    /// It.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// See the module's documentation. Whoever pops a node owns it until it is pushed again.
pub(crate) struct TaggedStack<N> {
    head: AtomicU64,
    _nodes: PhantomData<AtomicPtr<N>>,
}

/// The node that `head` names, or null.
///
/// A pointer, not a reference: only what `pop` takes has been acquired from the thread that wrote it.
fn node_of<N>(head: u64) -> *mut N {
    let address = usize::try_from(head & ADDRESS).unwrap_or(0);
    core::ptr::with_exposed_provenance_mut(address)
}

/// The head that follows `old` and names the node at `address`.
fn successor(old: u64, address: usize) -> u64 {
    let low = old.wrapping_add(1) & 0xfff;
    let high = if low == 0 {
        (old >> 48).wrapping_add(1)
    } else {
        old >> 48
    };
    address as u64 & ADDRESS | high << 48 | low
}

impl<N: Linked> TaggedStack<N> {
    constructor! {
        /// An empty one.
        pub(crate) fn new() -> Self {
            Self { head: AtomicU64::new(0), _nodes: PhantomData }
        }
    }

    /// Puts `node` on top.
    ///
    /// # Safety
    /// - `node` is aligned to 4096 bytes, at an address of at most 48 bits, and lives as long as the stack is used.
    /// - It is on no stack, and the caller owns it: this call gives it to whoever pops it.
    pub(crate) unsafe fn push(&self, node: &N) {
        let address = (&raw const *node).expose_provenance();
        debug_assert!(address as u64 & !ADDRESS == 0);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            node.link().store(node_of(head), Ordering::Relaxed);
            // Release: whoever takes the node sees what its last owner wrote.
            let new = successor(head, address);
            match self
                .head
                .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the node on top. The caller owns it from then on, with all that its owners before did to it.
    pub(crate) fn pop(&self) -> Option<&N> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // SAFETY: a head names no node (null) or one that was pushed, whose address was exposed then, and which lives, as `push`'s callers
            // have promised. Every change of the head is a read-modify-write, so that this load, an acquire, sees all that was done before the push.
            let top: &N = unsafe { node_of::<N>(head).as_ref() }?;
            // If another thread has taken the node since, this may be any link, and the exchange fails.
            let new = successor(head, top.link().load(Ordering::Relaxed).addr());
            match self
                .head
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(top),
                Err(now) => head = now,
            }
        }
    }

    /// Takes up to `count` nodes, calls `each` with every one of them, and puts them back. Others find the stack without them meanwhile.
    pub(crate) fn visit(&self, count: usize, mut each: impl FnMut(&N)) {
        let mut taken: *const N = null();
        for _ in 0..count {
            let Some(node) = self.pop() else { break };
            each(node);
            // Put aside, or the next turn would find it again.
            node.link().store(taken.cast_mut(), Ordering::Relaxed);
            taken = node;
        }
        // SAFETY: null or a node put aside above, owned by this thread; nodes live for ever.
        while let Some(node) = unsafe { taken.as_ref() } {
            taken = node.link().load(Ordering::Relaxed);
            // SAFETY: it was on this stack, hence is fit for it; it is not now, and this thread has popped it.
            unsafe { self.push(node) };
        }
    }
}
