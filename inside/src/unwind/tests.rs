//! Walks are held against those of the C++ runtime's unwinder.

use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, Once, OnceLock};

use quickcheck::{Gen, QuickCheck};

use super::cfi::{self, Rule};
use super::memory::Reader;
use super::{Frame, Memo, NUMBER_SHIFT, Stack, forget, modules, path, report_again, stack, walk};
use crate::sys::thread_stack;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, exact: *mut c_int) -> usize;
}

/// Appends the frame's address to the `Vec<u64>` at `data`.
///
/// # Safety
///
/// `context` is what the unwinder passes, and nobody else uses `data`.
unsafe extern "C" fn push(context: *mut c_void, data: *mut c_void) -> c_int {
    let mut exact = 0;
    // SAFETY: `context` is the unwinder's (`# Safety`).
    let ip = unsafe { _Unwind_GetIPInfo(context, &raw mut exact) } as u64;
    // SAFETY: `data` is a vector that nobody else uses (`# Safety`).
    let into = unsafe { &mut *data.cast::<Vec<u64>>() };
    if ip != 0 {
        into.push(ip + u64::from(exact != 0));
    }
    0
}

/// Start, end, bias and path of a module.
type Reported = (u64, u64, u64, Vec<u8>);

static REPORTED: Mutex<Vec<Reported>> = Mutex::new(Vec::new());

fn report(start: u64, end: u64, bias: u64, path: &[u8]) {
    REPORTED
        .lock()
        .unwrap()
        .push((start, end, bias, path.to_vec()));
}

/// A memo, and the stacks whose numbers, from 1 on, are noted in it.
struct Known {
    memo: Memo,
    stacks: Vec<Vec<u64>>,
    /// The last one that was walked.
    last: Vec<u64>,
}

thread_local! {
    static KNOWN: Cell<Option<Box<Known>>> = const { Cell::new(None) };
}

/// Tests that forget modules all the time, and the one that counts what is known, take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Stacks that a memo knew.
static HITS: AtomicUsize = AtomicUsize::new(0);
/// Frames that were known of the stack before.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Walks by the rules' cold and warm way and asks the memo, and asserts that all find what the
/// other unwinder finds. Returns the depth.
#[inline(never)]
fn compare() -> usize {
    let mut theirs: Vec<u64> = Vec::new();
    // SAFETY: `push` takes a `Vec<u64>`.
    unsafe { _Unwind_Backtrace(push, (&raw mut theirs).cast()) };
    // Theirs begins in this function.
    let expected = &theirs[1..];
    let mut ours = vec![0; theirs.len() + 8];
    // SAFETY: zeros are an empty memo, and an empty list of stacks is written over those.
    let mut known = KNOWN.take().unwrap_or_else(|| unsafe {
        let mut new = Box::<Known>::new_uninit();
        let place = new.as_mut_ptr();
        (&raw mut (*place).memo).write_bytes(0, 1);
        (&raw mut (*place).stacks).write(Vec::new());
        (&raw mut (*place).last).write(Vec::new());
        new.assume_init()
    });
    for with_memo in [false, true, true] {
        let memo = with_memo.then_some(&mut known.memo);
        // SAFETY: it is this thread's stack.
        match unsafe { stack(&mut ours, memo, thread_stack(), report) } {
            Stack::Known(number) => {
                assert_eq!(known.stacks[number as usize - 1], expected);
                HITS.fetch_add(1, Ordering::Relaxed);
            }
            Stack::Walked {
                len,
                is_cut,
                kept,
                note,
            } => {
                if kept.hash != 0 {
                    assert_eq!(kept.hash, hash(&ours[..len]));
                    let outer = |stack: &[u64]| stack[stack.len() - kept.frames..].to_vec();
                    assert_eq!(outer(&known.last), outer(&ours[..len]));
                    KEPT.fetch_add(kept.frames, Ordering::Relaxed);
                }
                if with_memo {
                    known.last = ours[..len].to_vec();
                }
                ours.iter_mut().for_each(without_number);
                assert_eq!(&ours[..len], expected);
                assert!(!is_cut);
                if let Some(note) = note {
                    known.stacks.push(expected.to_vec());
                    *note = u32::try_from(known.stacks.len()).unwrap();
                }
            }
        }
    }
    KNOWN.set(Some(known));
    let mut few = vec![0; theirs.len() / 2];
    assert_eq!(
        // SAFETY: it is this thread's stack.
        walked(&unsafe { stack(&mut few, None, thread_stack(), report) }),
        (few.len(), true)
    );
    few.iter_mut().for_each(without_number);
    assert_eq!(few, ours[..few.len()]);
    theirs.len()
}

/// The hash of a stack, innermost address first.
fn hash(stack: &[u64]) -> u64 {
    let addresses = stack.iter().rev();
    addresses.fold(path::EMPTY, |hash, &pc| path::add_to_hash(hash, pc)) | 1
}

/// Leaves the address of a frame.
fn without_number(frame: &mut u64) {
    *frame &= (1 << NUMBER_SHIFT) - 1;
}

/// The length, and whether frames are left out.
fn walked(stack: &Stack<'_>) -> (usize, bool) {
    match *stack {
        Stack::Walked { len, is_cut, .. } => (len, is_cut),
        Stack::Known(_) => panic!("{stack:?} without a memo"),
    }
}

const LIBRARY: &str = r"
#include <alloca.h>
#include <string.h>
typedef void (*callback)(void *);
static volatile int seen;
__attribute__((noinline)) static void touch(char *bytes, int len) {
    memset(bytes, 1, len);
    seen += bytes[len / 2];
}
void c_plain(callback f, void *arg) { char a[SPACE]; touch(a, SPACE); f(arg); seen++; }
void c_dynamic(callback f, void *arg, int len) {
    char *a = alloca(len);
    touch(a, len); f(arg); touch(a, len);
}
void c_aligned(callback f, void *arg, int len) {
    __attribute__((aligned(64))) char b[64];
    char *a = alloca(len);
    touch(a, len); touch(b, 64); f(arg); touch(b, 64); touch(a, len);
}
void c_deep(callback f, void *arg, int depth) {
    if (depth) c_deep(f, arg, depth - 1); else f(arg);
    seen++;
}
";

type Call = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, c_int);

struct Library {
    file: tempfile::TempPath,
    plain: Call,
    dynamic: Call,
    aligned: Call,
    deep: Call,
}

fn open(file: &std::path::Path) -> *mut c_void {
    let path = CString::new(file.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: the library runs nothing when it is loaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null());
    library
}

/// Compiles the library without frame pointers. The frame of `c_plain` has `space` bytes.
fn compile(space: u32) -> tempfile::TempPath {
    let source = tempfile::Builder::new().suffix(".c").tempfile().unwrap();
    std::fs::write(source.path(), LIBRARY).unwrap();
    let file = tempfile::Builder::new()
        .suffix(".so")
        .tempfile()
        .unwrap()
        .into_temp_path();
    let compiled = std::process::Command::new("cc")
        .args([
            "-O2",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-shared",
            "-fPIC",
            &format!("-DSPACE={space}"),
            "-o",
        ])
        .args([&*file, source.path()])
        .status();
    assert!(compiled.unwrap().success());
    file
}

static C: LazyLock<Library> = LazyLock::new(|| {
    let file = compile(200);
    let library = open(&file);
    let [plain, dynamic, aligned, deep] =
        ["c_plain", "c_dynamic", "c_aligned", "c_deep"].map(|name| symbol(library, name));
    Library {
        file,
        plain,
        dynamic,
        aligned,
        deep,
    }
});

fn symbol(library: *mut c_void, name: &str) -> Call {
    let name = CString::new(name).unwrap();
    // SAFETY: the library is open, and its functions take these arguments or fewer.
    unsafe {
        let symbol = libc::dlsym(library, name.as_ptr());
        assert!(!symbol.is_null());
        *(&raw const symbol).cast::<Call>()
    }
}

thread_local! {
    /// What a callback without an argument goes on with.
    static REST: Cell<Option<&'static [u8]>> = const { Cell::new(None) };
}

extern "C" fn go_on(_: *mut c_void) {
    nest(REST.get().expect("the caller has set it"));
}

extern "C" fn go_on_comparing(_: *const c_void, _: *const c_void) -> c_int {
    go_on_once();
    0
}

extern "C" fn handler(_: c_int) {
    nest(REST.get().expect("the caller has set it"));
}

// Calls its first argument on the stack whose end is the second, as coroutines do.
std::arch::global_asm!(
    "ccscope_test_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rsi",
    "call rdi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
);

unsafe extern "C" {
    fn ccscope_test_on_stack(callback: extern "C" fn(*mut c_void), end: *mut u8);
}

/// Goes on if nobody has yet.
fn go_on_once() {
    if let Some(rest) = REST.take() {
        nest(rest);
        REST.set(None);
    }
}

/// Enters the handler, with `SIGUSR2` on a stack of its own.
fn raise(signal: c_int) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for signal in [libc::SIGUSR1, libc::SIGUSR2] {
            // SAFETY: the handler is entered only by `raise`, where all functions may be called.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as extern "C" fn(c_int) as usize;
                let own = if signal == libc::SIGUSR2 {
                    libc::SA_ONSTACK
                } else {
                    0
                };
                action.sa_flags = libc::SA_NODEFER | own;
                assert_eq!(
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
                    0
                );
            }
        }
    });
    let mut room = vec![0_u8; 1 << 20];
    // SAFETY: the signal has a handler. The room outlives its use as a stack.
    unsafe {
        let mut before: libc::stack_t = std::mem::zeroed();
        let during = libc::stack_t {
            ss_sp: room.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: room.len(),
        };
        let own = signal == libc::SIGUSR2;
        assert!(!own || libc::sigaltstack(&raw const during, &raw mut before) == 0);
        assert_eq!(libc::raise(signal), 0);
        assert!(!own || libc::sigaltstack(&raw const before, std::ptr::null_mut()) == 0);
    }
}

/// Calls functions of the kinds that `pattern` says, each within the one before, and compares
/// stacks in the last.
#[inline(never)]
fn nest(pattern: &'static [u8]) {
    let Some((&kind, rest)) = pattern.split_first() else {
        compare();
        return;
    };
    REST.set(Some(rest));
    let size = c_int::from(kind) * 16 + 16;
    let null = std::ptr::null_mut();
    match kind % 13 {
        0 => nest(rest),
        1 => {
            let mut large = [kind; 9000];
            black_box(&mut large);
            nest(rest);
            black_box(&mut large);
        }
        2 => black_box(Box::new(move || nest(rest)) as Box<dyn Fn()>)(),
        3 => {
            let mut numbers = [3_u32, 1, 2];
            // SAFETY: the array has three numbers of four bytes.
            unsafe {
                libc::qsort(numbers.as_mut_ptr().cast(), 3, 4, Some(go_on_comparing));
            }
        }
        4 => std::thread::scope(|scope| scope.spawn(|| nest(rest)).join().unwrap()),
        5 => raise(libc::SIGUSR1),
        // On the same stack: a handler that returns to another one must not be entered again.
        6 => raise(if rest.iter().any(|kind| kind % 13 == 6) {
            libc::SIGUSR1
        } else {
            libc::SIGUSR2
        }),
        // SAFETY: the library calls back once, with the argument.
        7 => unsafe { (C.plain)(go_on, null, size) },
        // SAFETY: the library calls back once, with the argument.
        8 => unsafe { (C.dynamic)(go_on, null, size) },
        // SAFETY: the library calls back once, with the argument.
        9 => unsafe { (C.aligned)(go_on, null, size) },
        // SAFETY: the library calls back once, with the argument.
        10 => unsafe { (C.deep)(go_on, null, size / 64) },
        11 => {
            let mut room = vec![0_u128; 1 << 16];
            // SAFETY: the room is aligned, and large enough for what follows.
            unsafe { ccscope_test_on_stack(go_on, room.as_mut_ptr_range().end.cast()) };
        }
        _ => std::panic::catch_unwind(|| nest(rest)).unwrap(),
    }
    black_box(kind);
}

#[test]
fn stacks_are_those_of_the_other_unwinder() {
    let _turn = TURN.lock();
    for kind in 0..13 {
        nest(vec![kind, 0].leak());
    }
    // Each has most frames of the one before.
    for depth in (0..60).chain((0..60).rev()) {
        nest(vec![0; depth].leak());
    }
    // None is kept once libraries have taken the place of others, in another test.
    let kept = KEPT.load(Ordering::Relaxed);
    assert!(kept >= 500 || modules::IN_TURN.load(Ordering::Relaxed));
    let property: fn(Vec<u8>) = |pattern| nest(pattern.leak());
    QuickCheck::new()
        .tests(300)
        .rng(Gen::new(24))
        .quickcheck(property);
    assert!(HITS.load(Ordering::Relaxed) >= 50);
}

#[test]
fn threads_share_the_table() {
    let _turn = TURN.lock();
    // The thread sanitizer does not see that threads wait until it is there.
    LazyLock::force(&C);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                forget();
            }
        });
        let walkers = [0, 1, 2, 3].map(|thread: u8| {
            scope.spawn(move || {
                for round in 0..100_u8 {
                    nest(vec![thread.wrapping_mul(37) ^ round, 0, round, 2, 7].leak());
                }
            })
        });
        let walked = walkers.map(std::thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        assert!(walked.iter().all(Result::is_ok));
    });
}

#[test]
fn ten_thousand_frames_are_walked() {
    let deep = std::thread::Builder::new().stack_size(64 << 20).spawn(|| {
        REST.set(Some(&[]));
        // SAFETY: the library calls back once, at this depth.
        unsafe { (C.deep)(go_on, std::ptr::null_mut(), 10_000) };
        fn recurse(depth: usize) -> usize {
            if depth == 0 {
                compare()
            } else {
                black_box(recurse(black_box(depth - 1)))
            }
        }
        recurse(10_000)
    });
    assert!(deep.unwrap().join().unwrap() > 10_000);
}

/// Code of no module, as from a compiler at run time: its frames have a frame pointer.
#[test]
fn generated_code_is_walked_by_frame_pointers() {
    // push rbp; mov rbp, rsp; sub rsp, 32; call rdi; leave; ret
    const CODE: [u8; 12] = [
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3,
    ];
    // Their frames are more than the kernel reads at once.
    const CALLS: usize = 30;
    type Generated = extern "C" fn(extern "C" fn());
    thread_local! {
        static FOUND: Cell<(usize, [u64; 128])> = const { Cell::new((0, [0; 128])) };
        static NEXT: Cell<(usize, Option<Generated>)> = const { Cell::new((0, None)) };
    }
    extern "C" fn record() {
        if let (1.., Some(generated)) = NEXT.get() {
            NEXT.set((NEXT.get().0 - 1, Some(generated)));
            generated(record);
            // No tail call, which would end the frame before.
            return black_box(());
        }
        let mut found = [0; 128];
        // SAFETY: the thread's stack is not told.
        let (len, _) = walked(&unsafe { stack(&mut found, None, [0; 2], report) });
        FOUND.set((len, found));
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, filled with a function of this type.
    let (page, generated) = unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<[u8; 12]>().write(CODE);
        (page.addr() as u64, *(&raw const page).cast::<Generated>())
    };
    let mut here = [0; 64];
    // SAFETY: the thread's stack is not told.
    let (len, cut) = walked(&unsafe { stack(&mut here, None, [0; 2], report) });
    NEXT.set((CALLS - 1, Some(generated)));
    generated(record);
    let (found, stack) = FOUND.get();
    let own = 2 * CALLS;
    assert_eq!((found, cut), (len + own, false));
    let generated = stack[..own].iter().step_by(2);
    assert!({ generated }.all(|&address| address == page + 10));
    assert_eq!(stack[own..found], here[..len]);
}

#[test]
fn modules_are_reported_once() {
    compare();
    let library = &*C;
    let first = open(&library.file);
    nest(&[7]);
    // SAFETY: it was opened twice.
    assert_eq!(unsafe { libc::dlclose(first) }, 0);
    forget();
    nest(&[7]);
    let reported = REPORTED.lock().unwrap();
    // The only module whose path ends like that, where `address` lies.
    let check = |path: &[u8], address: usize| {
        let mut found = reported.iter().filter(|module| module.3.ends_with(path));
        let (start, end, bias, _) = found.next().expect("the module was reported");
        assert!((*start..*end).contains(&(address as u64)) && bias % 4096 == 0);
        assert_eq!(found.count(), 0);
    };
    let program = std::env::current_exe().unwrap();
    check(
        program.as_os_str().as_encoded_bytes(),
        compare as fn() -> usize as usize,
    );
    check(b"/libc.so.6", libc::qsort as *const () as usize);
    check(
        library.file.as_os_str().as_encoded_bytes(),
        library.plain as usize,
    );

    static AGAIN: AtomicUsize = AtomicUsize::new(0);
    report_again(|_, _, _, path| {
        AGAIN.fetch_add(
            usize::from(path.ends_with(b"/libc.so.6")),
            Ordering::Relaxed,
        );
    });
    assert_eq!(AGAIN.load(Ordering::Relaxed), 1);
}

/// Libraries take the place of others that were closed, while threads walk.
#[test]
fn closed_libraries_are_forgotten() {
    let _turn = TURN.lock();
    let files = [compile(200), compile(1000)];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for kinds in [[0, 7, 3], [9, 5, 2]] {
            let done = &done;
            scope.spawn(move || {
                let pattern = kinds.to_vec().leak();
                while !done.load(Ordering::Relaxed) {
                    nest(pattern);
                }
            });
        }
        for file in files.iter().cycle().take(100) {
            let library = open(file);
            REST.set(Some(&[0, 3]));
            // SAFETY: the library calls back once, and is then closed for good.
            unsafe {
                symbol(library, "c_plain")(go_on, std::ptr::null_mut(), 0);
                assert_eq!(libc::dlclose(library), 0);
            }
            forget();
        }
        done.store(true, Ordering::Relaxed);
    });
    let reported = REPORTED.lock().unwrap();
    for file in &files {
        let path = file.as_os_str().as_encoded_bytes();
        assert!(reported.iter().any(|module| module.3 == path));
    }
}

/// The unwind information of this program, copied.
fn own_segment() -> (Vec<u8>, &'static modules::Module) {
    let here = compare as fn() -> usize as usize as u64;
    let module = modules::find(here, report).expect("this module is loaded");
    // Read by the kernel: the address sanitizer forbids loads between statics.
    let mut bytes = vec![0; usize::try_from(module.segment_len).unwrap()];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, module.segment).unwrap();
    (bytes, module)
}

#[test]
fn damaged_unwind_information_is_survived() {
    let (segment, module) = own_segment();
    let header = usize::try_from(module.index - module.segment).unwrap();
    // Changes a byte of the copy, looks up rules, and mends it.
    let mut found = [0_u32; 2];
    let mut random = Gen::new(1 << 20);
    let mut copy = segment.clone();
    let mut number = |below: usize| usize::try_from(u64::random(&mut random)).unwrap() % below;
    for _ in 0..20_000 {
        let pc = module.start + number(usize::try_from(module.end - module.start).unwrap()) as u64;
        let at = match number(4) {
            0 => header + number(12),
            _ => header + number(segment.len() - header),
        };
        copy[at] = u8::try_from(number(256)).unwrap();
        let rule = cfi::rule(&copy, module.segment, module.index, pc);
        found[usize::from(rule.is_some())] += 1;
        // Cut off anywhere.
        let len = number(copy.len());
        cfi::rule(&copy[..len], module.segment, module.index, pc);
        copy[at] = segment[at];
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}

trait Random {
    fn random(generator: &mut Gen) -> Self;
}

impl Random for u64 {
    fn random(generator: &mut Gen) -> u64 {
        quickcheck::Arbitrary::arbitrary(generator)
    }
}

#[test]
fn random_bytes_are_no_unwind_information() {
    fn property(mut bytes: Vec<u8>, entry: Vec<u8>, pc: u8) -> bool {
        // Random bytes alone would not get beyond the header: one entry, with a CIE before.
        let base = 0x7000_0000_0000;
        let table = [
            1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,
        ];
        let none = cfi::rule(&bytes, base, base, base + u64::from(pc)).is_none();
        bytes.splice(0..0, *b"\x01zR\0\x01\x78\x10\x01\x1b");
        let mut segment = table.to_vec();
        let cie = u32::try_from(bytes.len() + 4).unwrap();
        segment.extend((12 + u32::try_from(entry.len()).unwrap()).to_le_bytes());
        segment.extend(
            (u32::try_from(entry.len()).unwrap() + 16)
                .wrapping_neg()
                .to_le_bytes(),
        );
        segment.extend((-28_i32).to_le_bytes());
        segment.extend(200_u32.to_le_bytes());
        segment.extend(&entry);
        segment.extend(cie.to_le_bytes());
        segment.extend(0_u32.to_le_bytes());
        segment.extend(&bytes);
        cfi::rule(&segment, base, base, base + u64::from(pc));
        none
    }
    let property: fn(Vec<u8>, Vec<u8>, u8) -> bool = property;
    QuickCheck::new()
        .tests(if cfg!(miri) { 100 } else { 20_000 })
        .rng(Gen::new(60))
        .quickcheck(property);
}

#[test]
fn garbage_in_registers_is_survived() {
    // A stack that stays: a wrong rule may lead to the next, and other tests end their threads.
    static STACK: OnceLock<&[u64]> = OnceLock::new();
    STACK.get_or_init(|| vec![0; 4 << 20].leak());
    fn property(ip: u64, bp: u64, near: bool, code: bool) {
        let stack = STACK.get().expect("it is made above");
        let sp = (&raw const stack[1 << 20]).addr() as u64;
        let text = libc::qsort as *const () as u64 & !0xf_ffff;
        let frame = Frame {
            ip: if code {
                text + ip % (2 << 20)
            } else {
                ip.max(1)
            },
            sp,
            bp: if near {
                sp.wrapping_add((bp % (1 << 23)) & !7)
            } else {
                bp
            },
        };
        let mut found = [0; 32];
        // SAFETY: its stack pointer lies in memory that stays; the thread's stack is not told.
        let stack = unsafe { walk(frame, [0; 2], &mut found, None, report) };
        assert!(walked(&stack).0 <= 32);
    }
    let property: fn(u64, u64, bool, bool) = property;
    QuickCheck::new().tests(100_000).quickcheck(property);
}

#[test]
fn only_readable_memory_is_read() {
    let word = 77_u64;
    let address = (&raw const word).addr() as u64;
    // SAFETY: a new mapping, which nobody uses.
    let (last, forbidden) = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = libc::mmap(std::ptr::null_mut(), 8192, libc::PROT_READ, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        let forbidden = pages.byte_add(4096);
        assert_eq!(libc::mprotect(forbidden, 4096, libc::PROT_NONE), 0);
        (forbidden.addr() as u64 - 8, forbidden)
    };
    // By a load where the word is in the window, else by the kernel.
    let elsewhere = Box::new(0_u64);
    for (sp, is_in_window) in [
        (address & !7, true),
        ((&raw const *elsewhere).addr() as u64, false),
    ] {
        // SAFETY: it lies in memory that is mapped; the thread's stack is not told.
        let mut reader = unsafe { Reader::new(sp, [0; 2]) };
        assert_eq!(reader.is_in_window(address), is_in_window);
        assert_eq!(reader.word(address), Some(77));
        assert_eq!(reader.word(address + 1), None);
        for bad in [
            0,
            4096,
            forbidden.addr() as u64,
            1 << 47,
            1 << 63,
            u64::MAX - 7,
        ] {
            assert_eq!(reader.word(bad), None, "{bad:x}");
        }
        assert_eq!(reader.word(address), Some(77));
        assert_eq!(reader.word(last), Some(0));
        assert_eq!(reader.word(last + 8), None);
    }
    // SAFETY: mapped above.
    assert_eq!(unsafe { libc::munmap(forbidden.byte_sub(4096), 8192) }, 0);
}

// Says that its frame is a page long.
std::arch::global_asm!(
    "ccscope_test_wrong_rule:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 4096",
    "push rbp",
    "call {walk}",
    "pop rbp",
    "ret",
    ".cfi_endproc",
    walk = sym walk_beyond,
);

unsafe extern "C" {
    safe fn ccscope_test_wrong_rule(_: *mut c_void);
}

static BEYOND: AtomicUsize = AtomicUsize::new(0);

/// Walks into the page `BEYOND` the stack until the memo knows that, and then without the page.
extern "C" fn walk_beyond() {
    // SAFETY: zeros are an empty memo.
    let mut memo = unsafe { Box::<Memo>::new_zeroed().assume_init() };
    for round in 0..5 {
        if round == 3 {
            let beyond = std::ptr::with_exposed_provenance_mut(BEYOND.load(Ordering::Relaxed));
            // SAFETY: the test has mapped the page, and nobody has anything there.
            assert_eq!(unsafe { libc::munmap(beyond, 4096) }, 0);
        }
        let mut found = [0; 8];
        // SAFETY: it is this thread's stack.
        match unsafe { stack(&mut found, Some(&mut memo), thread_stack(), report) } {
            Stack::Known(number) => assert_eq!((number, round < 3), (1, true)),
            Stack::Walked { len, note, .. } => {
                assert!(len > 0);
                if let Some(note) = note {
                    *note = 1;
                }
            }
        }
    }
}

#[test]
fn pages_that_were_unmapped_are_not_read() {
    const LEN: usize = 64 << 10;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, of which all but the last page is a stack.
    unsafe {
        let room = libc::mmap(std::ptr::null_mut(), LEN, rights, flags, -1, 0);
        assert_ne!(room, libc::MAP_FAILED);
        let end = room.cast::<u8>().add(LEN - 4096);
        BEYOND.store(end.expose_provenance(), Ordering::Relaxed);
        ccscope_test_on_stack(ccscope_test_wrong_rule, end);
        assert_eq!(libc::munmap(room, LEN - 4096), 0);
    }
}

#[test]
fn rules_are_packed() {
    for cfa in [-16, -8, 8, 16, 4096, (1 << 22) - 8, -(1 << 22)] {
        for bp in [-8192, -16, 0, 8, 8184] {
            for rule in [
                Rule::Sp { cfa, bp },
                Rule::Bp { cfa, bp },
                Rule::Aligned { cfa, bp },
            ] {
                let packed = rule.pack().expect("it fits");
                assert!(packed < 1 << 33);
                assert_eq!(Rule::unpack(packed | u64::MAX << 33), rule);
            }
        }
    }
    for rule in [Rule::End, Rule::Signal, Rule::Unknown] {
        assert_eq!(rule.pack().map(Rule::unpack), Some(rule));
    }
    for (cfa, bp) in [(1 << 22, 0), (8, 8192), (8, -8200), (12, 0), (8, -12)] {
        assert_eq!(Rule::Sp { cfa, bp }.pack(), None);
    }
}
