//! Rules: hints that the program does not give.
//!
//! At the call of `malloc`, the object that the new one will be linked with has its address in a
//! register that calls preserve, or on the stack, always at the same place for a call site of a
//! binary. A rule names the call site, the size and the place. As any hint is safe, a wrong rule
//! costs placement and nothing else.
//!
//! The table is filled when the library is loaded, without allocating, and is read-only from then
//! on, but for the counters and the addresses of modules that are loaded later.

mod text;

use core::ffi::CStr;
use core::fmt;
use core::num::NonZero;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use allocator::Policy;
use allocator::raw::{self, HINTED_BYTES_MAX};
use text::{Action, MODULES_MAX, Parsed, Places, PolicyName, RULES_MAX, Rule, Site};

use crate::entry::{self, LASTS, PLACES, Snapshot, thread_state};
use crate::modules::{self, BuildId};

/// Rules apply to alignments of at most a block.
pub(crate) const ALIGN_MAX: usize = 64;
/// A longer file is none of rules.
const FILE_BYTES_MAX: usize = 1 << 20;
/// A module's address while it is not loaded.
const NOT_LOADED: usize = usize::MAX;

/// `repr(C)`: assembly reads the filter.
#[repr(C)]
pub(crate) struct Table {
    /// For the low 12 bits of a return address, which do not depend on where its module is loaded:
    /// the first of the rules that may be for it, as a number from 1 on, or 0.
    filter: [u8; 4096],
    parsed: Parsed<'static>,
    text: &'static [u8],
    counts: Option<&'static Counts>,
}

/// Null until there are rules.
pub(crate) static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
/// What is added to the offsets in each module of the file.
static BASES: [AtomicUsize; MODULES_MAX] = [const { AtomicUsize::new(NOT_LOADED) }; MODULES_MAX];
/// How many modules of the file are not loaded.
static MISSING: AtomicUsize = AtomicUsize::new(0);
/// Hits of the filter without a rule, while modules are missing.
static MISSES: AtomicUsize = AtomicUsize::new(0);

/// What became of the objects of each rule.
struct Counts([[AtomicU64; 4]; RULES_MAX]);

fn table() -> Option<&'static Table> {
    // SAFETY: null, or published by `load` once it is complete, which Acquire shows; never
    // unmapped.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// Reads the file of rules and applies them from now on. `counts`: for the report.
///
/// # Errors
/// Why there are no rules.
pub(crate) fn load(path: &CStr, counts: bool) -> Result<(), Failure> {
    let text = read(path)?;
    let counts = if counts { Some(zeroed()?) } else { None };
    let place: NonNull<Table> = map(size_of::<Table>())?.cast();
    // SAFETY: fresh memory, as large as a table, and aligned to a page.
    let table = unsafe {
        place.write(Table {
            filter: [0; 4096],
            parsed: Parsed::EMPTY,
            text,
            counts,
        });
        &mut *place.as_ptr()
    };
    let places = Places {
        registers: &PLACES.0,
        stack: PLACES.1,
        stack_word: PLACES.2,
    };
    table
        .parsed
        .read(text, places, LASTS)
        .map_err(Failure::Text)?;
    // From the last on: of two rules for a call, the first applies.
    let rules = table.parsed.rules.iter_mut().enumerate().rev();
    for (index, rule) in rules.filter_map(|(index, rule)| Some((index, rule.as_mut()?))) {
        let low = rule.site.offset % table.filter.len();
        if let Some(first) = table.filter.get_mut(low) {
            rule.next = *first;
            *first = text::small(index + 1);
        }
    }
    let modules = table.parsed.modules.iter().flatten().count();
    MISSING.store(modules, Ordering::Relaxed);
    // SAFETY: mapped above; the kernel rounds the size up to pages, as it did then. `table` is not
    // used any more.
    unsafe { libc::mprotect(place.as_ptr().cast(), size_of::<Table>(), libc::PROT_READ) };
    modules::prepare();
    // SAFETY: a table, which is not changed any more.
    find_modules(unsafe { place.as_ref() });
    TABLE.store(place.as_ptr(), Ordering::Release);
    entry::apply_rules();
    Ok(())
}

/// Why there are no rules.
pub(crate) enum Failure {
    Os(&'static str),
    Text(text::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(what) => write!(f, "{what}: {}", std::io::Error::last_os_error()),
            Self::Text(error) => error.fmt(f),
        }
    }
}

/// Memory of zeros.
fn map(bytes: usize) -> Result<NonNull<u8>, Failure> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory of the kernel's choice.
    let start = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    match NonNull::new(start) {
        Some(place) if start != libc::MAP_FAILED => Ok(place.cast()),
        _ => Err(Failure::Os("memory for the rules")),
    }
}

fn zeroed() -> Result<&'static Counts, Failure> {
    let place: NonNull<Counts> = map(size_of::<Counts>())?.cast();
    // SAFETY: fresh memory, aligned to a page; zero bytes are valid counters. Never unmapped.
    Ok(unsafe { place.as_ref() })
}

/// The file's bytes, in memory that stays.
fn read(path: &CStr) -> Result<&'static [u8], Failure> {
    // A pipe must not keep the program waiting.
    let how = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(path.as_ptr(), how) };
    if file < 0 {
        return Err(Failure::Os("cannot be opened"));
    }
    let text = map(FILE_BYTES_MAX + 1).and_then(|start| {
        let mut length = 0;
        loop {
            let place = start.as_ptr().wrapping_add(length);
            // SAFETY: the rest of the memory mapped above.
            let read = unsafe { libc::read(file, place.cast(), FILE_BYTES_MAX + 1 - length) };
            match usize::try_from(read) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(_) if crate::errno::get() == libc::EINTR => {}
                Err(_) => return Err(Failure::Os("cannot be read")),
            }
            if length > FILE_BYTES_MAX {
                let reason = "the file is longer than 1 MiB";
                return Err(Failure::Text(text::Error { line: 1, reason }));
            }
        }
        // SAFETY: mapped above, so long at least, never unmapped, and known to nothing else;
        // written only before this.
        Ok(unsafe { core::slice::from_raw_parts(start.as_ptr(), length) })
    });
    // SAFETY: opened above; closed once.
    unsafe { libc::close(file) };
    text
}

/// Notes where the modules of the file are loaded, if they are.
fn find_modules(table: &Table) {
    modules::for_each(|loaded| {
        note(table, loaded.base, &loaded.build_id());
        true
    });
}

/// Notes where the module at `address`, which may be any number, is loaded, if the file names it.
fn find_module_at(table: &Table, address: usize) {
    if let Some((base, build_id)) = modules::find(address) {
        note(table, base, &build_id);
    }
}

fn note(table: &Table, loaded: usize, build_id: &BuildId) {
    for (module, base) in table.parsed.modules.iter().zip(&BASES) {
        let is_it = module.is_some_and(|it| it.build_id == build_id.as_bytes());
        // Another thread may be noting the same.
        if is_it && base.swap(loaded, Ordering::Relaxed) == NOT_LOADED {
            MISSING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether `address` is that of `site`.
fn is_at(site: Site, address: usize) -> bool {
    BASES.get(usize::from(site.module)).is_some_and(|base| {
        let base = base.load(Ordering::Relaxed);
        base != NOT_LOADED && base.wrapping_add(site.offset) == address
    })
}

/// The rule for a call whose return address has passed the filter.
#[inline]
pub(crate) fn find<'a>(bytes: usize, align: usize, at: &Snapshot) -> Option<Found<'a>> {
    let table = table()?;
    if align > ALIGN_MAX {
        return None;
    }
    find_in(table, bytes, at).or_else(|| {
        if MISSING.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // Modules are looked for ever more seldom.
        let misses = MISSES.fetch_add(1, Ordering::Relaxed) + 1;
        if !misses.is_power_of_two() {
            return None;
        }
        find_module_at(table, at.return_address());
        for rule in table.rules_for(at.return_address()) {
            if let Some((_, word)) = rule.1.caller {
                find_module_at(table, at.word(usize::from(word)).unwrap_or_default());
            }
        }
        find_in(table, bytes, at)
    })
}

fn find_in<'a>(table: &'a Table, bytes: usize, at: &Snapshot) -> Option<Found<'a>> {
    let address = at.return_address();
    let mut rules = table.rules_for(address);
    let (number, rule) = rules.find(|(_, rule)| {
        rule.bytes == bytes
            && is_at(rule.site, address)
            && (rule.action == Action::Huge || bytes <= HINTED_BYTES_MAX)
            && rule.caller.is_none_or(|(site, word)| {
                at.word(usize::from(word))
                    .is_some_and(|word| is_at(site, word))
            })
    })?;
    let counts = table.counts.and_then(|counts| counts.0.get(number));
    Some(Found { rule, counts })
}

impl Table {
    /// The rules that may be for a return address, and their numbers.
    fn rules_for(&self, address: usize) -> impl Iterator<Item = (usize, &Rule)> {
        let get = |number: u8| {
            let number = usize::from(number).checked_sub(1)?;
            Some((number, self.parsed.rules.get(number)?.as_ref()?))
        };
        let first = self.filter.get(address % self.filter.len());
        // Each has a lower number than the one before it in the file: there is no circle.
        core::iter::successors(first.and_then(|&first| get(first)), move |(_, rule)| {
            get(rule.next)
        })
    }
}

/// A rule that applies.
pub(crate) struct Found<'a> {
    rule: &'a Rule,
    counts: Option<&'a [AtomicU64; 4]>,
}

impl Found<'_> {
    /// Whether all that it asks for is [`advise`](Self::advise).
    pub(crate) fn is_huge(&self) -> bool {
        self.rule.action == Action::Huge
    }

    /// Asks for huge pages for an object, or null.
    pub(crate) fn advise(&self, object: *mut u8) {
        raw::advise_huge(object);
        self.count(object.addr(), 0);
    }

    /// Allocates as the rule says. Null when out of memory, and where the hint is not to be read.
    pub(crate) fn allocate(&self, align: usize, at: &Snapshot) -> *mut u8 {
        let last = match self.rule.action {
            Action::Last(number) => thread_state().lasts.get(usize::from(number)),
            _ => None,
        };
        let hint = match self.rule.action {
            Action::Near(word) => match at.word(usize::from(word)) {
                Some(hint) => hint,
                None => return null_mut(),
            },
            Action::Last(_) => last.map_or(0, |last| last.get()),
            Action::Open | Action::Huge => 0,
        };
        let policy = self.rule.policy.map(|policy| match policy {
            PolicyName::Closest => Policy::Closest,
            PolicyName::FirstFit => Policy::FirstFit,
            PolicyName::NewBlock => Policy::NewBlock,
        });
        // A hint at nothing takes a block with room.
        let near = NonNull::without_provenance(NonZero::new(hint).unwrap_or(NonZero::<usize>::MIN));
        let object = match policy {
            None => raw::allocate(self.rule.bytes, align, Some(near)),
            Some(policy) => raw::allocate_with(self.rule.bytes, align, near, policy),
        };
        if let Some(last) = last {
            last.set(object.addr());
        }
        self.count(object.addr(), hint);
        object
    }

    /// Counts an object that was allocated near `hint`.
    #[inline]
    fn count(&self, object: usize, hint: usize) {
        let Some([applied, usable, same_block, same_page]) = self.counts else {
            return;
        };
        let add = |count: &AtomicU64, is: bool| {
            count.fetch_add(u64::from(is), Ordering::Relaxed);
        };
        let is_usable = raw::is_hint_usable(hint);
        add(applied, true);
        add(usable, is_usable);
        add(same_block, is_usable && object / 64 == hint / 64);
        add(same_page, is_usable && object / 4096 == hint / 4096);
    }
}

/// Calls `line` with a line for each rule, and for each module that is not loaded. Nothing without
/// rules.
pub(crate) fn report(mut line: impl FnMut(fmt::Arguments<'_>)) {
    let Some(table) = table() else { return };
    let Some(counts) = table.counts else { return };
    find_modules(table);
    let lossy = |bytes: &'static [u8]| String::from_utf8_lossy(bytes);
    for (module, base) in table.parsed.modules.iter().flatten().zip(&BASES) {
        if base.load(Ordering::Relaxed) == NOT_LOADED {
            let (name, build_id) = (lossy(module.name), lossy(module.build_id));
            line(format_args!(
                "rules of {name}: left out, no module with build id {build_id} is loaded"
            ));
        }
    }
    for (rule, counts) in table.parsed.rules.iter().flatten().zip(&counts.0) {
        let (start, end) = rule.text;
        let rule_text = table.text.get(start as usize..end as usize);
        let module = table.parsed.modules.get(usize::from(rule.site.module));
        let name = module.and_then(Option::as_ref).map(|it| lossy(it.name));
        let [applied, usable, same_block, same_page] =
            counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        line(format_args!(
            "rule {}{}: applied {applied}, usable {usable}, same block {same_block}, \
             same page {same_page}",
            name.unwrap_or_default(),
            lossy(rule_text.unwrap_or_default()).trim(),
        ));
    }
}
