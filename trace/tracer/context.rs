//! What the kernel tells a handler of signals about the interrupted thread.

/// Registers, in the kernel's order.
#[repr(C)]
pub(crate) struct Context {
    flags: u64,
    link: u64,
    /// The stack for handlers that is set again when the handler ends: address, flags, length.
    pub(crate) stack: [u64; 3],
    pub(crate) r8: u64,
    pub(crate) r9: u64,
    pub(crate) r10: u64,
    r11: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    pub(crate) r15: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    rbp: u64,
    rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rsp: u64,
    pub(crate) rip: u64,
    /// Flags of the processor.
    pub(crate) eflags: u64,
    segments: u64,
    /// Of a page fault: bit 1 is set for a store, bit 4 for a fetch of code.
    pub(crate) error: u64,
    trap: u64,
    old_mask: u64,
    address: u64,
    /// Where the vectors are, as `xsave` stores them.
    pub(crate) floating: u64,
    /// The kernel has no use for these: see [`super::signals`].
    pub(crate) reserved: [u64; 8],
    /// Signals that are kept from the thread.
    pub(crate) mask: u64,
}

/// Of [`Context::error`].
pub(crate) const IS_STORE: u64 = 2;
/// Of [`Context::error`].
pub(crate) const IS_FETCH: u64 = 16;
/// Of [`Context::eflags`].
pub(crate) const TRAP_FLAG: u64 = 0x100;
/// Of [`Context::eflags`].
pub(crate) const DIRECTION: u64 = 0x400;

impl Context {
    /// A register by the number that processors give it; those that no body uses have none.
    pub(crate) fn register(&mut self, number: u8) -> Option<&mut u64> {
        Some(match number {
            3 => &mut self.rbx,
            6 => &mut self.rsi,
            12 => &mut self.r12,
            14 => &mut self.r14,
            15 => &mut self.r15,
            _ => return None,
        })
    }

    /// A register by the processor's number.
    pub(crate) fn value_of(&self, number: u8) -> u64 {
        let registers = [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi,
            self.r8, self.r9, self.r10, self.r11, self.r12, self.r13, self.r14, self.r15,
        ];
        registers.get(usize::from(number)).copied().unwrap_or(0)
    }

    /// The arguments of a system call.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// Sets them.
    pub(crate) fn set_arguments(&mut self, to: [u64; 6]) {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9] = to;
    }
}

/// What happened.
#[repr(C)]
pub(crate) struct Info {
    /// The signal.
    pub(crate) signal: i32,
    errno: i32,
    /// Above 0: the kernel found it; else somebody sent it.
    pub(crate) code: i32,
    padding: i32,
    /// Of a fault: where.
    pub(crate) address: u64,
    call: i32,
    /// Of a system call: by which of the processor's modes.
    pub(crate) architecture: u32,
}
