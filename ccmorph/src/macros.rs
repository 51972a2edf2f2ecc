//! Macros that several modules use.

/// Implements one of the traits of traversals for collections: each element shows what it holds.
macro_rules! collections {
    ($show:ident($visitor:ty) $([$($generics:tt)*] $trait:path, $collection:ty: $elements:ident
        $({$($item:tt)*})?;)*) => {$(
        impl<$($generics)*> $trait for $collection {
            $($($item)*)?

            #[inline]
            fn $show<'a>(&'a mut self, visitor: $visitor) {
                for element in self.$elements() {
                    element.$show(visitor);
                }
            }
        }
    )*};
}
pub(crate) use collections;

/// Defines a wrapper by reference, which implements a trait for the wrapped type.
macro_rules! wrapper {
    ($(#[$type_doc:meta])* $name:ident; $(#[$function_doc:meta])* $function:ident;) => {
        $(#[$type_doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name<W: ?Sized, L> {
            link: std::marker::PhantomData<fn() -> L>,
            shown: W,
        }

        $(#[$function_doc])*
        #[inline]
        pub fn $function<W: ?Sized, L>(shown: &mut W) -> &mut $name<W, L> {
            let wrapper = std::ptr::from_mut(shown) as *mut $name<W, L>;
            // SAFETY: the wrapper is `repr(transparent)` over `W`, as the other field has size 0
            // and alignment 1. So the pointer is aligned and valid for as long as the reference
            // that it was made from, which is borrowed meanwhile.
            unsafe { &mut *wrapper }
        }
    };
}
pub(crate) use wrapper;
