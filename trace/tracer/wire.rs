//! What the tracer and the tool tell each other: one question and one answer for each instruction
//! that is met, and the files of events.
//!
//! Both sides compile this file.

/// Bytes of the longest instruction.
pub const LONGEST: usize = 15;
/// Bytes of the longest thunk.
pub const THUNK: usize = 48;
/// Accesses that one instruction may make and be told of.
pub const ACCESSES: usize = 4;

/// The tracer asks: what does the instruction at `ip` access, and how is it aimed elsewhere?
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// [`FOR_THUNK`] or [`FOR_PATCH`].
    pub asks: u64,
    /// Where the instruction lies.
    pub ip: u64,
    /// Where its copy will lie.
    pub thunk: u64,
    /// How far the memory to be used lies above the memory that the instruction names.
    pub delta: i64,
    /// How many of `bytes` could be read.
    pub len: u64,
    /// The code from `ip` on.
    pub bytes: [u8; 16],
}

/// Of [`Question::asks`]: an [`Answer`].
pub const FOR_THUNK: u64 = 0;
/// Of [`Question::asks`]: a [`Body`].
pub const FOR_PATCH: u64 = 1;

/// How an instruction is carried out.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As a copy that is aimed at the alias, with a jump back.
    Copy = 0,
    /// In place: its pages are opened, and the processor's trap flag is set.
    Step = 1,
    /// A call through memory: the tracer pushes the return address and jumps.
    Call = 2,
    /// `movs`, `stos`, `lods`, `cmps` or `scas`: the tracer does it.
    String = 3,
    /// Elements of a vector at addresses in another, as [`Elements`] in [`Answer::code`] says: they
    /// are told one by one, and the instruction is run in place.
    Elements = 4,
}

/// An access relative to the address of the fault.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// [`LOAD`] or [`STORE`].
    pub kind: u8,
    /// Which operand of the instruction it is.
    pub operand: u8,
    /// Its bytes.
    pub size: u16,
}

/// The tool answers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// A [`Plan`].
    pub plan: u8,
    /// Bytes of the instruction.
    pub len: u8,
    /// Bytes of `code` that are used.
    pub code_len: u8,
    /// How many of `accesses` are used.
    pub accesses_len: u8,
    /// In order.
    pub accesses: [Access; ACCESSES],
    /// For [`Plan::String`]: see `STRING_…`.
    pub string: u8,
    /// For [`Plan::String`]: bytes of an element.
    pub element: u8,
    /// Where in `code` the displacement of four bytes is that aims it; 0: it has none.
    pub displacement: u8,
    /// Whether that counts from the instruction's end.
    pub is_relative: u8,
    /// The thunk.
    pub code: [u8; THUNK],
}

/// Bytes of the longest body.
pub const BODY: usize = 192;

/// What runs in place of a patched instruction, at any address:
///
/// ```text
///     lea rsp, [rsp - 128]                    the red zone stays
///     push S;  lea S, [the operand]           S: a register that the instruction does not use
///     push rdi, rax, rcx, rdx, r8, r9, r10, r11;  lahf;  seto al;  push rax
///     mov rdi, S;  lea rax, [site];  call [recorder]
///     add S, rax;  mov rcx, rax;  pop rax;  mov [rsp - 8], rcx
///     add al, 127;  sahf;  pop r11, r10, r9, r8, rdx, rcx, rax, rdi
/// run:
///     the instruction, on [S]
///     pop S;  lea rsp, [rsp + 128];  jmp [next]
///             or, of a call: mov S, [S];  xchg S, [rsp];  mov [rsp + 128], next;  ret 120
///             and of a jump: mov S, [S];  xchg S, [rsp];  ret 128
/// next:       where the program goes on
/// recorder:   to be filled in by the tracer
/// site:       a `Site`
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// Bytes of `code` that are used; 0: the instruction cannot be patched.
    pub len: u8,
    /// Where in it `run` is.
    pub run: u8,
    /// Where in it `recorder` is.
    pub recorder: u8,
    /// The number of `S`, as processors count registers.
    pub scratch: u8,
    /// Unused.
    pub zero: [u8; 4],
    /// The code, and data behind it.
    pub code: [u8; BODY],
}

/// What the recorder is told of a patched instruction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The instruction.
    pub ip: u64,
    /// The last word of the first event, without the thread; of the second, or 0.
    pub events: [u64; 2],
    /// From the first byte of the operand to its last.
    pub to_last: u64,
}

/// Where the distance from the operand to what is accessed lies from the stack pointer at `run`.
pub const BODY_DELTA: i64 = -72;
/// How far the stack pointer at `run` lies below the program's.
pub const BODY_STACK: u64 = 128 + 8;

/// What a gather or a scatter accesses. Registers have the processor's numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// Added to each address.
    pub displacement: i64,
    /// The register with the base; [`NO_BASE`]: none.
    pub base: u8,
    /// The vector with the indices.
    pub index: u8,
    /// What they are multiplied by.
    pub scale: u8,
    /// Bytes of an index.
    pub index_size: u8,
    /// Bytes of an element.
    pub size: u8,
    /// How many there are.
    pub count: u8,
    /// The vector whose elements' highest bits say which are accessed; from [`MASKS`] on, a mask.
    pub mask: u8,
    /// [`LOAD`] or [`STORE`].
    pub kind: u8,
}
/// See [`Elements::base`].
pub const NO_BASE: u8 = 16;
/// See [`Elements::mask`].
pub const MASKS: u8 = 32;

/// [`Answer::string`]: the operation.
pub const STRING_MOVS: u8 = 0;
/// See [`STRING_MOVS`].
pub const STRING_STOS: u8 = 1;
/// See [`STRING_MOVS`].
pub const STRING_LODS: u8 = 2;
/// See [`STRING_MOVS`].
pub const STRING_CMPS: u8 = 3;
/// See [`STRING_MOVS`].
pub const STRING_SCAS: u8 = 4;
/// The operation is in these bits.
pub const STRING_OPERATION: u8 = 7;
/// Added to it with `rep` or `repe`.
pub const STRING_REP: u8 = 8;
/// Added to it with `repne`.
pub const STRING_REPNE: u8 = 16;

/// The start of a file of events.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Process.
    pub pid: u64,
    /// Events that were recorded or had no room; the first [`Header::room`] are there.
    pub count: u64,
    /// Events that have room.
    pub room: u64,
    /// Faults that were answered.
    pub faults: u64,
    /// Instructions that were run in place.
    pub stepped: u64,
    /// Instructions that the tracer carried out.
    pub emulated: u64,
    /// Mappings that are too large, shared or executable, and so not traced.
    pub left_out: u64,
    /// Instructions that were patched.
    pub patched: u64,
    /// Unused.
    pub zero: [u64; 7],
}

/// Bytes of the header's part of the file.
pub const HEADER: usize = 4096;
/// `ccstrace`, version 1.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ccstrac1");

/// What happened; its place in the file is its place in time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The instruction; of a call, where it returns to.
    pub ip: u64,
    /// The first byte.
    pub address: u64,
    /// Bytes of what is larger than an operand; [`PREVIOUS`]: nothing.
    pub len: u64,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The letter; 0 while it is not written.
    pub kind: u8,
    /// Unused.
    pub zero: u8,
    /// Bytes of an operand.
    pub size: u16,
}

/// Kinds of events: those of table I of MadT, and some more.
pub const LOAD: u8 = b'L';
/// A store.
pub const STORE: u8 = b'S';
/// A block is copied: to `address`. A [`PREVIOUS`] follows with where from.
pub const COPY: u8 = b'Y';
/// A block is written.
pub const FILL: u8 = b'W';
/// A block is read.
pub const FETCH: u8 = b'G';
/// `malloc`.
pub const MALLOC: u8 = b'M';
/// `calloc`.
pub const CALLOC: u8 = b'C';
/// `mmap`.
pub const MMAP: u8 = b'P';
/// `realloc`: a [`PREVIOUS`] follows.
pub const REALLOC: u8 = b'R';
/// `mremap`: a [`PREVIOUS`] follows.
pub const MREMAP: u8 = b'E';
/// `free`.
pub const FREE: u8 = b'F';
/// `munmap`.
pub const MUNMAP: u8 = b'U';
/// A thread begins; `address` is the thread that made it.
pub const THREAD: u8 = b'T';
/// A thread ends.
pub const ENDED: u8 = b'X';
/// A process is made; `address` is its number.
pub const FORK: u8 = b'K';
/// The process becomes another program.
pub const EXEC: u8 = b'B';
/// A signal, whose number is `address`, was handled.
pub const SIGNAL: u8 = b'N';
/// Belongs to the event before it of the same thread: where a block came from, or what it was.
pub const PREVIOUS: u8 = b'-';
/// Belongs to the event before it of the same thread: frames above its own, in `ip`, `address` and
/// `len`, or 0.
pub const FRAMES: u8 = b'^';
