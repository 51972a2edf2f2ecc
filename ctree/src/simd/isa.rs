//! Which vector instructions the machine has, and functions compiled for each set of them.

/// A set of vector instructions that this machine has.
///
/// Invariant: a value other than portable exists only where the instructions do; the only
/// constructors are [`Isa::detect`] and, in tests, `Isa::available`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(pub(super) Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The set that every machine has.
    pub(crate) const PORTABLE: Isa = Isa(Level::Portable);

    /// The best set that this machine has.
    pub(crate) fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if super::x86::has_avx512() {
                return Isa(Level::Avx512);
            }
            if super::x86::has_avx2() {
                return Isa(Level::Avx2);
            }
        }
        Isa(Level::Portable)
    }

    /// All sets that this machine has, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Isa> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [
            super::x86::has_avx2().then_some(Isa(Level::Avx2)),
            super::x86::has_avx512().then_some(Isa(Level::Avx512)),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let vectors: [Option<Isa>; 0] = [];
        let vectors = vectors.into_iter().flatten();
        core::iter::once(Isa(Level::Portable))
            .chain(vectors)
            .collect()
    }
}

/// Defines a function that runs `kernel::<lane, Count>` with the instructions of an [`Isa`].
///
/// Each instruction set has an entry function that is compiled for it, and into which the kernel is
/// inlined: a whole search holds no call and no switch of the instruction set.
///
/// The portable entry is never inlined. The registers that it needs would be saved by the function
/// that chooses the path, on every path: a lookup with AVX-512 among 10 keys took 8.0 ns, not 7.0.
///
/// The defined function has the contract of the kernel; the `Isa` proves that the machine has the
/// instructions.
macro_rules! entry {
    (
        $(#[$attr:meta])*
        $vis:vis fn $name:ident $(<$param:ident: $bound:path>)? (
            $($arg:ident: $type:ty),* $(,)?
        ) $(-> $output:ty)? = $($kernel:ident)::+ <$lane:ty>
    ) => {
        $(#[$attr])*
        $vis unsafe fn $name $(<$param: $bound>)? (
            isa: $crate::simd::isa::Isa, $($arg: $type),*
        ) $(-> $output)? {
            /// # Safety
            /// As for the kernel.
            #[inline(never)]
            unsafe fn portable $(<$param: $bound>)? ($($arg: $type),*) $(-> $output)? {
                use $crate::simd::portable::Portable;
                // SAFETY: passed on; no instructions are needed.
                unsafe { $($kernel)::+::<$lane, Portable>($($arg),*) }
            }

            /// # Safety
            /// As for the kernel, on a machine with AVX2.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,popcnt")]
            unsafe fn avx2 $(<$param: $bound>)? ($($arg: $type),*) $(-> $output)? {
                use $crate::simd::x86::Avx2;
                // SAFETY: passed on; this function has the instructions.
                unsafe { $($kernel)::+::<$lane, Avx2>($($arg),*) }
            }

            /// # Safety
            /// As for the kernel, on a machine with AVX-512.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,popcnt")]
            unsafe fn avx512 $(<$param: $bound>)? ($($arg: $type),*) $(-> $output)? {
                use $crate::simd::x86::Avx512;
                // SAFETY: passed on; this function has the instructions.
                unsafe { $($kernel)::+::<$lane, Avx512>($($arg),*) }
            }

            match isa.0 {
                // SAFETY: the caller keeps the kernel's contract; no instructions are needed.
                $crate::simd::isa::Level::Portable => unsafe { portable($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: passed on; by its invariant the `Isa` proves the instructions.
                $crate::simd::isa::Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the caller keeps the kernel's contract; the `Isa` proves AVX-512.
                $crate::simd::isa::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
