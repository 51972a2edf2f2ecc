//! The functions that instrumented programs call before loads and stores.

use super::fast_path::access;

macro_rules! callbacks {
    ($($load:ident $load_noabort:ident $store:ident $store_noabort:ident $size:literal;)*) => {$(
        /// Before a load.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $load(address: u64) {
            access::<false>(address, $size);
        }

        /// Before a load, for gcc.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $load_noabort(address: u64) {
            access::<false>(address, $size);
        }

        /// Before a store.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $store(address: u64) {
            access::<true>(address, $size);
        }

        /// Before a store, for gcc.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $store_noabort(address: u64) {
            access::<true>(address, $size);
        }
    )*};
}

callbacks! {
    __asan_load1 __asan_load1_noabort __asan_store1 __asan_store1_noabort 1;
    __asan_load2 __asan_load2_noabort __asan_store2 __asan_store2_noabort 2;
    __asan_load4 __asan_load4_noabort __asan_store4 __asan_store4_noabort 4;
    __asan_load8 __asan_load8_noabort __asan_store8 __asan_store8_noabort 8;
    __asan_load16 __asan_load16_noabort __asan_store16 __asan_store16_noabort 16;
}

macro_rules! sized {
    ($($name:ident $write:literal;)*) => {$(
        /// Before an access of any size.
        // Names that are not mangled are not judged.
        #[cfg_attr(test, expect(non_snake_case, reason = "the compiler's name"))]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $name(address: u64, size: u64) {
            if size > 0 {
                access::<$write>(address, size);
            }
        }
    )*};
}

sized! {
    __asan_loadN false;
    __asan_loadN_noabort false;
    __asan_storeN true;
    __asan_storeN_noabort true;
}
