//! A shadow of the live objects: byte ranges and their contents, kept outside of the allocator
//! under test.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;

use ccmalloc::raw;

/// Where an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Home {
    /// By the thread, with a layout.
    Thread,
    /// By the thread, by size as in C.
    C,
    /// In the heap of this number.
    Heap(usize),
}

/// A live object and the byte that it is filled with.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: Layout,
    pub(crate) home: Home,
    fill: u8,
}

// SAFETY: an object is owned by the holder of the value; the allocator takes frees from any thread.
unsafe impl Send for Object {}

impl Object {
    /// Takes charge of a fresh allocation and fills it with a byte that follows from `number`.
    ///
    /// # Safety
    /// - `start` was allocated by ccmalloc with `layout`, and is not used elsewhere.
    pub(crate) unsafe fn adopt(
        start: NonNull<u8>,
        layout: Layout,
        home: Home,
        number: usize,
    ) -> Self {
        assert_eq!(start.addr().get() % layout.align(), 0, "{layout:?}");
        let object = Self {
            start,
            layout,
            home,
            fill: (number % 251).to_le_bytes()[0],
        };
        object.fill();
        object
    }

    /// Fills the object, with C's also the bytes behind it that may be used.
    fn fill(&self) {
        let bytes = match self.home {
            // SAFETY: the object is live.
            Home::C => unsafe { raw::usable_bytes(self.start.as_ptr()) },
            _ => self.layout.size(),
        };
        assert!(bytes >= self.layout.size(), "{self:?}: {bytes}");
        // SAFETY: the object is live and has this many bytes.
        unsafe { self.start.write_bytes(self.fill, bytes) };
    }

    /// Objects of no size in a heap have neither memory nor an address of their own.
    pub(crate) fn has_memory(&self) -> bool {
        self.layout.size() > 0 || !matches!(self.home, Home::Heap(_))
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

    /// Frees the object by one of the functions that may free it on any thread.
    pub(crate) fn free(self) {
        if !self.has_memory() {
            return;
        }
        let (home, way) = (self.home, self.fill % 3);
        let (start, layout) = self.release();
        // SAFETY: allocated with this layout and live, and given up here.
        unsafe {
            match way {
                0 if home == Home::C => raw::deallocate_sized(start.as_ptr(), layout.size()),
                0 => ccmalloc::cc_dealloc(start, layout),
                _ => raw::deallocate(start.as_ptr()),
            }
        }
    }

    pub(crate) fn resize(&mut self, bytes: usize, hint: Option<NonNull<u8>>) {
        if self.home == Home::C {
            let layout =
                Layout::from_size_align(bytes, raw::natural_align(bytes)).expect("a layout");
            return self.resize_by(layout, |start, _| {
                // SAFETY: live, and replaced by the result.
                NonNull::new(unsafe { raw::reallocate(start.as_ptr(), bytes, hint) })
                    .expect("memory")
            });
        }
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

/// The addresses in use by the programs of all threads.
pub(crate) static CLAIMS: Claims = Claims(Mutex::new(BTreeMap::new()));

/// Where objects start and end.
pub(crate) struct Claims(Mutex<BTreeMap<usize, usize>>);

impl Claims {
    pub(crate) fn insert(&self, object: &Object) {
        let start = object.start.addr().get();
        let end = start + object.layout.size().max(1);
        let mut claims = self.0.lock().unwrap();
        if let Some((&below, &below_end)) = claims.range(..end).next_back() {
            assert!(
                below_end <= start,
                "{start:#x}..{end:#x} overlaps {below:#x}..{below_end:#x}"
            );
        }
        claims.insert(start, end);
    }

    pub(crate) fn remove(&self, object: &Object) {
        let end = self.0.lock().unwrap().remove(&object.start.addr().get());
        assert!(end.is_some());
    }
}
