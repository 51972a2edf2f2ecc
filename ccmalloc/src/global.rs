//! The global allocator, and allocation with a hint.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::extents::{self, KEPT_BYTES};
use crate::policy::Policy;
use crate::target::target;
use crate::thread::{self, Ambient, AmbientGuard};
use crate::{abandoned, registry, sweep, sys};

/// The allocator, for `#[global_allocator]`. Zero-sized.
///
/// # Examples
///
/// ```
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// let squares: Vec<u64> = (0..1000).map(|n| n * n).collect();
/// assert!(ccmalloc::contains(squares.as_ptr().cast()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CcMalloc;

impl CcMalloc {
    /// Creates the allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

// SAFETY: live objects are disjoint (a slab's lie at multiples of their size, and a live one is not
// allocated again; each bit of a co-location page's free map stands for bytes of its own; spans and
// mappings are of slots and chunks taken), have the size and alignment asked for
// (`Class::for_layout`, `Request::new`, `large::alloc`), and stay until they are freed. Nothing
// here unwinds: indices and arithmetic are checked, and misuse aborts.
unsafe impl GlobalAlloc for CcMalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        thread::alloc(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { thread::dealloc(object, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        thread::alloc_zeroed(layout)
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the same.
        unsafe { thread::realloc(object, layout, new_size, None) }
    }
}

static IS_DECLARED_GLOBAL: AtomicBool = AtomicBool::new(false);

/// Declares that the program's global allocator is [`CcMalloc`], so that code with many objects,
/// such as `ccmorph`, may call `CcMalloc` directly. Takes effect at once, in all threads, and for
/// good.
///
/// # Safety
/// - The program's `#[global_allocator]` is a [`CcMalloc`], or passes each request on to one as it
///   is, and does not rely on which requests it gets: it may free objects that `CcMalloc` allocated
///   directly, and `CcMalloc` objects that it allocated.
///
/// # Examples
///
/// ```
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// // SAFETY: the global allocator is declared just above.
/// unsafe { ccmalloc::declare_global() };
/// assert!(ccmalloc::is_declared_global());
/// ```
pub unsafe fn declare_global() {
    // Nothing is published with it.
    IS_DECLARED_GLOBAL.store(true, Ordering::Relaxed);
}

/// Whether [`declare_global`] has been called. An object of the global allocator is then one of
/// [`CcMalloc`], and [`cc_dealloc`] may free it.
#[inline]
#[must_use]
pub fn is_declared_global() -> bool {
    IS_DECLARED_GLOBAL.load(Ordering::Relaxed)
}

/// Frees objects of one layout, with about a third fewer instructions than [`cc_dealloc`] for each.
///
/// # Safety
/// - Each of the objects was allocated by this allocator ([`CcMalloc`] or [`cc_alloc`]) with this
///   layout, and is not used any more; none is there twice.
#[inline]
pub unsafe fn cc_dealloc_each(objects: impl IntoIterator<Item = NonNull<u8>>, layout: Layout) {
    let objects = objects.into_iter().map(NonNull::as_ptr);
    // SAFETY: the caller's contract is the same.
    unsafe { thread::dealloc_each(objects, layout) };
}

/// Allocates `layout`, near `hint` if there is one, by the process's default policy.
///
/// The hint is a pointer to an object that is likely to be used together with the new one. **Any
/// hint is safe**: the allocator never reads through it. One that is null, freed, foreign,
/// misaligned or another thread's only costs placement. Hints apply to objects of up to 512 bytes
/// and alignments of up to 64.
///
/// Returns `None` when out of memory. A size of 0 is allocated like 1, and must be freed like any
/// other.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// let layout = Layout::new::<[u64; 3]>();
/// let parent = ccmalloc::cc_alloc(layout, None).expect("memory");
/// let child = ccmalloc::cc_alloc(layout, Some(parent)).expect("memory");
/// // SAFETY: each was allocated above with this layout, and is freed once.
/// unsafe {
///     ccmalloc::cc_dealloc(child, layout);
///     ccmalloc::cc_dealloc(parent, layout);
/// }
/// ```
#[inline]
#[must_use]
pub fn cc_alloc(layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    alloc(layout, hint, None)
}

/// As [`cc_alloc`], with this policy.
#[inline]
#[must_use]
pub fn cc_alloc_with(
    layout: Layout,
    hint: Option<NonNull<u8>>,
    policy: Policy,
) -> Option<NonNull<u8>> {
    alloc(layout, hint, Some(policy))
}

#[inline(always)]
fn alloc(layout: Layout, hint: Option<NonNull<u8>>, policy: Option<Policy>) -> Option<NonNull<u8>> {
    NonNull::new(match hint {
        None => thread::alloc(layout),
        Some(hint) => thread::alloc_near(layout, hint.addr().get(), policy),
    })
}

/// Changes the size of an object to `new_size` bytes, at the same alignment: in place if possible,
/// else by moving it near `hint`, or, without one, near where it was if a hint placed it.
///
/// Returns `None` when out of memory or when `new_size` overflows `isize` at this alignment; the
/// object is then as it was.
///
/// # Safety
/// - `object` was allocated by this allocator ([`CcMalloc`] or `cc_alloc`) with the layout `old`.
/// - Unless `None` is returned, `object` is not used any more, and the result has the layout of
///   `new_size` and `old`'s alignment.
#[must_use]
pub unsafe fn cc_realloc(
    object: NonNull<u8>,
    old: Layout,
    new_size: usize,
    hint: Option<NonNull<u8>>,
) -> Option<NonNull<u8>> {
    // SAFETY: the caller's contract is the same.
    NonNull::new(unsafe { thread::realloc(object.as_ptr(), old, new_size, hint) })
}

/// Frees an object.
///
/// # Safety
/// - `object` was allocated by this allocator ([`CcMalloc`] or `cc_alloc`) with this layout.
/// - It is not used any more.
#[inline]
pub unsafe fn cc_dealloc(object: NonNull<u8>, layout: Layout) {
    // SAFETY: the caller's contract is the same.
    unsafe { thread::dealloc(object.as_ptr(), layout) };
}

/// Runs `f` and places every allocation that this thread makes in it through [`CcMalloc`] near
/// `hint`, including those of `Box`, `Rc` and `BTreeMap`. If calls are nested, the innermost wins.
///
/// # What a hint means
///
/// If `hint` lies in an object that was placed by a hint itself, it means that object: `&*node`,
/// `&node.key` and a link inside the node, empty or not, all mean the node. Otherwise it means the
/// first object placed by a hint that a pointer in the first 64 bytes of the value points to. So a
/// variable that holds a `&Node`, a `Box`, an `Rc`, an `Option` of these, a raw pointer or a `Vec`
/// is as good a hint as the object behind it. One pointer is followed, not a chain.
///
/// An object can get neighbours only if
///
/// - **it was placed by a hint itself.** Start a structure with `near(&(), ..)`: its first node
///   then gets a cache block with room for more.
/// - **the calling thread allocated it.** Threads do not share cache blocks. Give a structure that
///   several threads grow a [`Heap`](crate::Heap), and keep both behind one lock.
///
/// **Any hint is safe.** One that leads to no such object, or is given for an object of more than
/// 512 bytes, only costs placement. [`placement`](crate::placement) and [`watch`](crate::watch)
/// count it as `not_usable`. Debug builds [warn](crate::set_hint_warnings) of hints that are local
/// variables and lead to no such object.
///
/// # Examples
///
/// ```
/// use ccmalloc::near;
///
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// struct Node { key: u64, next: Option<Box<Node>> }
///
/// let watch = ccmalloc::watch();
/// let mut head = near(&(), || Box::new(Node { key: 0, next: None }));
/// head.next = Some(near(&head, || Box::new(Node { key: 1, next: None })));
/// assert_eq!(watch.report().same_block, 1);
/// # let next = head.next.as_ref().unwrap();
/// # assert_eq!((head.key, next.key, next.next.is_none()), (0, 1, true));
/// ```
#[cfg_attr(debug_assertions, track_caller)]
pub fn near<T: ?Sized, R>(hint: &T, f: impl FnOnce() -> R) -> R {
    run_ambient(Ambient::Near(target(thread::existing(), hint), None), f)
}

/// As [`near`], with this policy.
#[cfg_attr(debug_assertions, track_caller)]
pub fn near_with<T: ?Sized, R>(hint: &T, policy: Policy, f: impl FnOnce() -> R) -> R {
    let hint = target(thread::existing(), hint);
    run_ambient(Ambient::Near(hint, Some(policy)), f)
}

/// Runs `f` and places what this thread allocates in it as if no [`near`] were around it: for what
/// is rarely used, so that it takes no room beside what is used often.
///
/// # Examples
///
/// ```
/// use ccmalloc::{near, unhinted};
///
/// #[global_allocator]
/// static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
///
/// struct Node { key: u64, notes: Box<[u8; 40]> }
///
/// let watch = ccmalloc::watch();
/// let node = near(&(), || Box::new(Node { key: 1, notes: unhinted(|| Box::new([0; 40])) }));
/// assert_eq!(watch.report().hinted(), 1);
/// # assert_eq!((node.key, node.notes[39]), (1, 0));
/// ```
pub fn unhinted<R>(f: impl FnOnce() -> R) -> R {
    run_ambient(Ambient::None, f)
}

fn run_ambient<R>(ambient: Ambient, f: impl FnOnce() -> R) -> R {
    let _restore = AmbientGuard::set(ambient);
    f()
}

/// Whether `ptr` points into memory that this allocator manages, of any thread. Does not read
/// through it; two to five dependent loads.
#[must_use]
pub fn contains(ptr: *const u8) -> bool {
    registry::contains(ptr.addr())
}

/// Asks the OS to back the whole 2 MiB pages inside `[ptr, ptr + bytes)` by huge pages. Returns
/// whether it takes the advice, which it refuses for ranges that are not mapped. Contents stay.
pub fn advise_huge_pages(ptr: *const u8, bytes: usize) -> bool {
    sys::advise_huge(ptr, bytes)
}

/// Gives unused memory back to the OS, of all threads, and returns about how many bytes.
///
/// Without this, memory goes back once it has been unused for the
/// [decay time](crate::set_options), when a thread next takes or frees memory.
///
/// Costs a system call for each run of unused slots of 64 KiB and each unused chunk; what is used
/// again afterwards costs page faults. What other threads are changing at the moment is left out.
pub fn purge() -> usize {
    if let Some(own) = thread::existing() {
        own.collect_remote();
        own.trim();
    }
    abandoned::reclaim(usize::MAX);
    let kept = KEPT_BYTES.load(Ordering::Relaxed);
    extents::unmap_kept();
    kept + sweep::sweep_all()
}

/// Gives back to the OS what has been unused for the [decay time](crate::set_options), in up to 64
/// heaps; nothing if that was done within that time. For a thread of a program whose others may all
/// be idle.
pub fn decay() {
    sweep::tick(sys::milliseconds());
}

/// Checks all metadata of the calling thread's heap, and describes the first contradiction.
#[doc(hidden)]
pub fn check() -> Result<(), &'static str> {
    thread::check()
}
