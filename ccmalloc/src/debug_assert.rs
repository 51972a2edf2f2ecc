//! [`debug_assert!`] as an allocator needs it: it ends the process, where the standard library's
//! panics.
//!
//! A global allocator must not unwind, and a panic allocates its message, from the arena that was
//! found broken. So a failed assertion prints one line to stderr and aborts, as misuse does.

/// Aborts with a message unless the condition holds, in builds with debug assertions.
macro_rules! debug_assert {
    ($holds:expr $(,)?) => {
        if cfg!(debug_assertions) && !$holds {
            let holds = stringify!($holds);
            let (file, line) = (file!(), line!());
            $crate::sys::die_of(format_args!("{file}:{line}: this does not hold: {holds}"));
        }
    };
}
