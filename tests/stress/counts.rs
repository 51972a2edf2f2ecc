//! How often each kind of thing was done.

use std::fmt;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Counters, one for each kind.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counts {
            $($(#[$doc])* pub(crate) $name: u64,)*
        }

        impl Counts {
            /// The sums.
            pub(crate) fn plus(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name,)* }
            }
        }

        impl fmt::Display for Counts {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>14}  {}", self.$name, $text)?;)*
                Ok(())
            }
        }
    };
}

counts! {
    plain: "objects without a hint",
    hint_live: "objects with a live hint",
    hint_inside: "objects with a hint into or past a live object",
    hint_stale: "objects with a freed hint",
    hint_theirs: "objects with a hint of another thread's",
    hint_wild: "objects with a hint that is no object (null, wild, the stack, static memory)",
    zeroed: "objects zeroed",
    ambient: "objects under an ambient hint",
    placed: "objects in regions",
    freed_own: "frees by the thread that allocated",
    freed_theirs: "frees by another thread",
    freed_late: "frees after the thread that allocated has ended",
    resized: "changes of size",
    resized_moved: "of which moved",
    large: "objects above 16 KiB",
    huge: "objects above 1 MiB",
    aligned: "objects with an alignment above 64 B",
    regions: "regions",
    threads: "threads",
    checks: "checks of a heap's metadata",
}

impl Counts {
    /// Objects made.
    pub(crate) fn allocations(&self) -> u64 {
        self.plain
            + self.hint_live
            + self.hint_inside
            + self.hint_stale
            + self.hint_theirs
            + self.hint_wild
            + self.zeroed
            + self.ambient
            + self.placed
    }

    /// Objects freed.
    pub(crate) fn freed(&self) -> u64 {
        self.freed_own + self.freed_theirs + self.freed_late
    }

    /// Calls of the allocator.
    pub(crate) fn operations(&self) -> u64 {
        self.allocations() + self.freed() + self.resized
    }
}
