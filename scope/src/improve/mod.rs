//! Tries changes of a program and keeps those that the clock confirms.
//!
//! A *change* alters how a program is started, as a rule of placement for `libccmalloc.so`
//! ([`rules`]), or the program itself: an edit of its source ([`edits`], made in a copy of the
//! [`package`]). A *setup* is the program as it is, or the allocator with a set
//! of changes. [`search`](search::search) compares setups on a [`Lab`](gate::Lab), which runs them:
//!
//! 1. the allocator alone against the program as it is;
//! 2. all changes at once against the allocator; if they gain, each besides the others;
//! 3. otherwise each change alone, and those that gain added one by one, the largest gain first;
//! 4. what is left, measured once more, against both.
//!
//! [`gate`] compares two setups: pairs of runs in turns, and an [`interval`] that stays honest
//! although it is looked at after every few pairs.

mod commands;
mod dependencies;
pub(crate) mod edits;
pub(crate) mod gate;
pub(crate) mod interval;
pub(crate) mod package;
pub(crate) mod programs;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod sites;
