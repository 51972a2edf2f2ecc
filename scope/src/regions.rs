//! Regions that a program names itself, and spans of `tracing`.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::hook::Hook;

/// 0 before the first call, 1 without the runtime, 2 with it.
static STATE: AtomicU8 = AtomicU8::new(0);
static ENTER: Hook = Hook::new(c"ccscope_region_enter");
static EXIT: Hook = Hook::new(c"ccscope_region_exit");

#[inline(always)]
fn is_recorded() -> bool {
    match STATE.load(Ordering::Acquire) {
        0 => look(),
        state => state == 2,
    }
}

#[inline(always)]
fn look() -> bool {
    let found = ENTER.find() && EXIT.find();
    STATE.store(if found { 2 } else { 1 }, Ordering::Release);
    found
}

/// Names the rest of the block as a region for `ccscope run --regions`.
///
/// It gives a guard, with which the region ends. Outside of the tool this costs one comparison.
///
/// ```
/// fn parse(text: &str) -> Vec<u32> {
///     let _region = ccscope::region!("parse");
///     text.split(' ').filter_map(|word| word.parse().ok()).collect()
/// }
/// # assert_eq!(parse("1 2 x"), [1, 2]);
/// ```
///
/// The name is a constant:
///
/// ```compile_fail
/// let name = String::from("parse");
/// let _region = ccscope::region!(&name);
/// ```
#[macro_export]
macro_rules! region {
    ($name:expr) => {{
        const NAME: &str = $name;
        $crate::RegionGuard::enter(NAME)
    }};
}

/// A region that ends when this is dropped; see [`region!`].
///
/// It stays in its thread:
///
/// ```compile_fail
/// let region = ccscope::region!("parse");
/// std::thread::spawn(move || drop(region));
/// ```
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct RegionGuard {
    is_recorded: bool,
    not_send: PhantomData<*const ()>,
}

impl RegionGuard {
    /// Begins a region.
    // In the caller, which is the region that this one lies in.
    #[inline(always)]
    pub fn enter(name: &'static str) -> RegionGuard {
        let is_recorded = is_recorded();
        if is_recorded {
            // SAFETY: what records has been found.
            unsafe { enter(name) };
        }
        RegionGuard {
            is_recorded,
            not_send: PhantomData,
        }
    }
}

impl Drop for RegionGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_recorded {
            // SAFETY: it was found when the region began.
            unsafe { exit() };
        }
    }
}

/// # Safety
///
/// [`is_recorded`] has returned true.
#[inline(always)]
unsafe fn enter(name: &'static str) {
    type Function = unsafe extern "C" fn(*const u8, usize);
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: the runtime's function of this name, which `look` has found; the name is a static.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, Function>(ENTER.address());
        function(name.as_ptr(), name.len());
    }
}

/// # Safety
///
/// [`is_recorded`] has returned true.
#[inline(always)]
unsafe fn exit() {
    type Function = unsafe extern "C" fn();
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: the runtime's function of this name, which `look` has found.
    unsafe {
        std::mem::transmute::<*mut c_void, Function>(EXIT.address())();
    }
}

#[cfg(feature = "tracing")]
pub use layer::Regions;

#[cfg(feature = "tracing")]
mod layer {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    use tracing_core::Subscriber;
    use tracing_core::span::{Attributes, Id};
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::Context;
    use tracing_subscriber::registry::LookupSpan;

    use crate::hook::Hook;

    /// The runtime's functions.
    struct Functions {
        new: unsafe extern "C" fn(*const u8, usize) -> u64,
        enter: unsafe extern "C" fn(u64),
        exit: unsafe extern "C" fn(u64),
        close: unsafe extern "C" fn(u64),
    }

    fn functions() -> Option<&'static Functions> {
        static NAMES: [Hook; 4] = [
            Hook::new(c"ccscope_span_new"),
            Hook::new(c"ccscope_span_enter"),
            Hook::new(c"ccscope_span_exit"),
            Hook::new(c"ccscope_span_close"),
        ];
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        let find = || {
            if !NAMES.iter().all(Hook::find) {
                return None;
            }
            type Visit = unsafe extern "C" fn(u64);
            let [new, enter, exit, close] = [0, 1, 2, 3].map(|at| NAMES[at].address());
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            // SAFETY: the runtime's functions of these names, which were found.
            unsafe {
                use std::mem::transmute;
                Some(Functions {
                    new: transmute::<*mut c_void, unsafe extern "C" fn(*const u8, usize) -> u64>(
                        new,
                    ),
                    enter: transmute::<*mut c_void, Visit>(enter),
                    exit: transmute::<*mut c_void, Visit>(exit),
                    close: transmute::<*mut c_void, Visit>(close),
                })
            }
        };
        FOUND.get_or_init(find).as_ref()
    }

    /// A layer of `tracing-subscriber` by which spans are regions of `ccscope run --regions`.
    ///
    /// A span may be entered many times, by any thread, as futures do: its footprint is what all
    /// visits have touched, and it is counted when it is closed. Without the tool the layer does
    /// nothing.
    ///
    /// ```
    /// use tracing_subscriber::layer::SubscriberExt;
    /// use tracing_subscriber::util::SubscriberInitExt;
    ///
    /// tracing_subscriber::registry().with(ccscope::Regions::new()).init();
    /// ```
    #[derive(Debug, Default)]
    pub struct Regions(());

    impl Regions {
        /// The layer.
        #[must_use]
        pub fn new() -> Regions {
            Regions(())
        }
    }

    /// The runtime's number of a span.
    struct Number(u64);

    impl Regions {
        /// Calls a function of the runtime for a span that it knows.
        fn visit<S>(&self, id: &Id, context: &Context<'_, S>, of: fn(&Functions, u64))
        where
            S: Subscriber + for<'a> LookupSpan<'a>,
        {
            let (Some(functions), Some(span)) = (functions(), context.span(id)) else {
                return;
            };
            let number = span.extensions().get::<Number>().map(|number| number.0);
            if let Some(number) = number {
                of(functions, number);
            }
        }
    }

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Regions {
        fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
            let (Some(functions), Some(span)) = (functions(), context.span(id)) else {
                return;
            };
            let name = attributes.metadata().name();
            // SAFETY: names of spans are static.
            let number = unsafe { (functions.new)(name.as_ptr(), name.len()) };
            span.extensions_mut().insert(Number(number));
        }

        fn on_enter(&self, id: &Id, context: Context<'_, S>) {
            // SAFETY: the registry has not closed the span.
            self.visit(id, &context, |to, number| unsafe { (to.enter)(number) });
        }

        fn on_exit(&self, id: &Id, context: Context<'_, S>) {
            // SAFETY: the registry has not closed the span.
            self.visit(id, &context, |to, number| unsafe { (to.exit)(number) });
        }

        fn on_close(&self, id: Id, context: Context<'_, S>) {
            // SAFETY: a span is closed once, when nobody has it entered.
            self.visit(&id, &context, |to, number| unsafe { (to.close)(number) });
        }
    }
}
