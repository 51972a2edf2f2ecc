//! A shadow of what is live: byte ranges and their contents, kept outside of the allocator under
//! test.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;

use ccmalloc::raw;

/// A live object and the byte that it is filled with.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: Layout,
    fill: u8,
}

// SAFETY: an object is owned by the holder of the value; the allocator takes frees from any thread.
unsafe impl Send for Object {}

impl Object {
    /// Takes charge of a fresh allocation and fills it with a byte that follows from `number`.
    ///
    /// # Safety
    /// - `start` was allocated by ccmalloc with `layout`, and is not used elsewhere.
    pub(crate) unsafe fn adopt(start: NonNull<u8>, layout: Layout, number: usize) -> Self {
        assert_eq!(start.addr().get() % layout.align(), 0, "{layout:?}");
        let object = Self {
            start,
            layout,
            fill: (number % 251).to_le_bytes()[0],
        };
        object.fill();
        object
    }

    fn fill(&self) {
        // SAFETY: the object is live and has this many bytes.
        unsafe { self.start.write_bytes(self.fill, self.layout.size()) };
    }

    fn check(&self, bytes: usize) {
        // SAFETY: the object is live, has been filled, and has at least this many bytes.
        let contents = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), bytes) };
        assert!(
            contents.iter().all(|&byte| byte == self.fill),
            "contents of {self:?} have changed"
        );
    }

    /// Checks the contents for the last time, and gives the object up.
    pub(crate) fn release(self) -> (NonNull<u8>, Layout) {
        self.check(self.layout.size());
        (self.start, self.layout)
    }

    pub(crate) fn free(self) {
        let by_address = !self.fill.is_multiple_of(2);
        let (start, layout) = self.release();
        if !by_address {
            // SAFETY: allocated with this layout, and given up here.
            unsafe { ccmalloc::cc_dealloc(start, layout) };
            return;
        }
        // As C does it, from the address alone.
        // SAFETY: the object is live.
        let usable_bytes = unsafe { raw::usable_bytes(start.as_ptr()) };
        assert!(
            usable_bytes >= layout.size(),
            "{start:?}, {layout:?}: {usable_bytes}"
        );
        // SAFETY: a live object, given up here.
        unsafe { raw::deallocate(start.as_ptr()) };
    }

    pub(crate) fn resize(&mut self, bytes: usize, hint: Option<NonNull<u8>>) {
        let layout = Layout::from_size_align(bytes, self.layout.align()).expect("a layout");
        self.resize_by(layout, |start, old| {
            // SAFETY: allocated with this layout; replaced by the result.
            unsafe { ccmalloc::cc_realloc(start, old, bytes, hint) }.expect("memory")
        });
    }

    /// Lets `resize` give the object another layout, and checks what it did.
    pub(crate) fn resize_by(
        &mut self,
        layout: Layout,
        resize: impl FnOnce(NonNull<u8>, Layout) -> NonNull<u8>,
    ) {
        self.check(self.layout.size());
        self.start = resize(self.start, self.layout);
        let kept = self.layout.size().min(layout.size());
        self.layout = layout;
        assert_eq!(self.start.addr().get() % layout.align(), 0);
        self.check(kept);
        self.fill();
    }
}

/// Which addresses are in use.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    pub(crate) fn insert(&mut self, object: &Object) {
        let start = object.start.addr().get();
        let end = start + object.layout.size().max(1);
        if let Some((&below, &below_end)) = self.0.range(..end).next_back() {
            assert!(
                below_end <= start,
                "{start:#x}..{end:#x} overlaps {below:#x}..{below_end:#x}"
            );
        }
        self.0.insert(start, end);
    }

    pub(crate) fn remove(&mut self, object: &Object) {
        assert!(self.0.remove(&object.start.addr().get()).is_some());
    }
}
