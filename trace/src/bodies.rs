//! What runs in place of an instruction that `--patch` replaces by a jump: see [`Body`].

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, IcedError, Instruction,
    InstructionInfoFactory, MemoryOperand, OpKind, Register,
};

use super::instructions::{accesses, has_one_operand, is_far};
use super::wire::{BODY, Body, Question, STORE};

/// Registers that a body and the recorder change between saving and restoring them.
const SAVED: [Register; 8] = [
    Register::RDI,
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
/// Registers that can hold the operand's address; the first two also beside `ah` to `dh`, which no
/// instruction with a prefix for `r8` to `r15` can name.
const SCRATCH: [Register; 5] = [
    Register::RSI,
    Register::RBX,
    Register::R12,
    Register::R14,
    Register::R15,
];
const HIGH: [Register; 4] = [Register::AH, Register::CH, Register::DH, Register::BH];

/// A body that is none: the instruction cannot be patched.
pub(super) const REFUSED: Body = Body {
    len: 0,
    run: 0,
    recorder: 0,
    scratch: 0,
    zero: [0; 4],
    code: [0; BODY],
};

/// The body for the instruction that a question is about.
pub(super) fn body(question: &Question) -> Body {
    let len = usize::try_from(question.len).unwrap_or(0);
    let bytes = &question.bytes[..len.min(question.bytes.len())];
    let instruction = Decoder::with_ip(64, bytes, question.ip, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return REFUSED;
    }
    let scratch = scratch_of(&instruction);
    { scratch.and_then(|scratch| code(&instruction, scratch).ok()) }.unwrap_or(REFUSED)
}

/// A register that can hold the address of the instruction's operand; `None` if the instruction
/// is not of the kind that can be patched.
fn scratch_of(instruction: &Instruction) -> Option<Register> {
    let is_plain = has_one_operand(instruction)
        && (instruction.flow_control() == FlowControl::Next || is_transfer(instruction))
        && !is_far(instruction.code())
        && !names_bits(instruction)
        && !has_other_operand(instruction)
        && !matches!(instruction.memory_segment(), Register::FS | Register::GS);
    if !is_plain {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let uses = |register: Register| {
        { info.used_registers().iter() }.any(|used| used.register().full_register() == register)
    };
    // The stack pointer is lower while the body runs.
    let names_stack =
        [instruction.memory_base(), instruction.memory_index()].contains(&Register::RSP);
    if names_stack || uses(Register::RSP) && !is_transfer(instruction) {
        return None;
    }
    let is_high = (0..instruction.op_count()).any(|at| HIGH.contains(&instruction.op_register(at)));
    let some = if is_high { &SCRATCH[..2] } else { &SCRATCH[..] };
    some.iter().copied().find(|&register| !uses(register))
}

/// Whether it is a jump or a call to where a word in memory says.
fn is_transfer(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64)
}

/// Whether a register names a bit, which may lie beyond the operand.
fn names_bits(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Bt, Btc, Btr, Bts};
    matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts)
        && instruction.op1_kind() == OpKind::Register
}

/// Whether it accesses more than its operand says: the processor's state, or what a register names.
fn has_other_operand(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Enqcmd, Enqcmds, Movdir64b};
    instruction.memory_size().size() == 0
        || matches!(instruction.mnemonic(), Enqcmd | Enqcmds | Movdir64b)
}

fn code(instruction: &Instruction, scratch: Register) -> Result<Body, IcedError> {
    let Some((events, to_last)) = site(instruction) else {
        return Ok(REFUSED);
    };
    let mut code = vec![0x48, 0x8d, 0x64, 0x24, 0x80]; // lea rsp, [rsp - 128]
    put(&mut code, &Instruction::with1(Code::Push_r64, scratch)?)?;
    put(&mut code, &address(instruction, scratch)?)?;
    for register in SAVED {
        put(&mut code, &Instruction::with1(Code::Push_r64, register)?)?;
    }
    code.extend([0x9f, 0x0f, 0x90, 0xc0, 0x50]); // lahf; seto al; push rax
    let moved = Instruction::with2(Code::Mov_rm64_r64, Register::RDI, scratch)?;
    put(&mut code, &moved)?;
    code.extend([0x48, 0x8d, 0x05]); // lea rax, [rip + ..]
    let to_site = code.len();
    code.extend([0, 0, 0, 0, 0xff, 0x15]); // call [rip + ..]
    let to_recorder = code.len();
    code.extend([0; 4]);
    let added = Instruction::with2(Code::Add_rm64_r64, scratch, Register::RAX)?;
    put(&mut code, &added)?;
    // mov rcx, rax; pop rax; mov [rsp - 8], rcx; add al, 127; sahf
    code.extend([
        0x48, 0x89, 0xc1, 0x58, 0x48, 0x89, 0x4c, 0x24, 0xf8, 0x04, 0x7f, 0x9e,
    ]);
    for register in SAVED.into_iter().rev() {
        put(&mut code, &Instruction::with1(Code::Pop_r64, register)?)?;
    }
    let run = code.len();
    if is_transfer(instruction) {
        transfer(instruction, scratch, &mut code)?;
    } else {
        put(&mut code, &aimed(instruction, scratch))?;
        put(&mut code, &Instruction::with1(Code::Pop_r64, scratch)?)?;
        code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
        code.extend([0xff, 0x25, 0, 0, 0, 0]); // jmp [rip]
    }
    code.extend(instruction.next_ip().to_le_bytes());
    let recorder = code.len();
    code.extend([0; 8]);
    for word in [instruction.ip(), events[0], events[1], to_last] {
        code.extend(word.to_le_bytes());
    }
    for (at, to) in [(to_site, recorder + 8), (to_recorder, recorder)] {
        let distance = u32::try_from(to - at - 4).expect("both are in a body");
        code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    let [len, run, recorder] = [code.len(), run, recorder].map(|it| u8::try_from(it).unwrap_or(0));
    let scratch = u8::try_from(scratch.number()).unwrap_or(0);
    let mut body = Body {
        len,
        run,
        recorder,
        scratch,
        ..REFUSED
    };
    match body.code.get_mut(..code.len()) {
        Some(place) => place.copy_from_slice(&code),
        None => return Ok(REFUSED),
    }
    Ok(body)
}

/// The end of a body that jumps or calls: the target takes the place of the scratch register's own
/// value on the stack, and is returned to.
fn transfer(from: &Instruction, scratch: Register, code: &mut Vec<u8>) -> Result<(), IcedError> {
    let target = MemoryOperand::with_base(scratch);
    put(
        code,
        &Instruction::with2(Code::Mov_r64_rm64, scratch, target)?,
    )?;
    let place = MemoryOperand::with_base(Register::RSP);
    put(
        code,
        &Instruction::with2(Code::Xchg_rm64_r64, place, scratch)?,
    )?;
    let mut below = 128_u8;
    if from.code() == Code::Call_rm64 {
        // Above the target and what `ret` skips: `mov dword ptr [rsp + ..], ..`, twice.
        for (at, half) in [0, 4]
            .into_iter()
            .zip(from.next_ip().to_le_bytes().chunks(4))
        {
            code.extend([0xc7, 0x84, 0x24, below + at, 0, 0, 0]);
            code.extend(half);
        }
        below -= 8;
    }
    code.extend([0xc2, below, 0]); // ret ..
    Ok(())
}

fn put(code: &mut Vec<u8>, instruction: &Instruction) -> Result<(), IcedError> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0)?;
    code.extend(encoder.take_buffer());
    Ok(())
}

/// Loads the operand's address.
fn address(instruction: &Instruction, to: Register) -> Result<Instruction, IcedError> {
    let [base, index] = [instruction.memory_base(), instruction.memory_index()];
    let displacement = instruction.memory_displacement64();
    if base == Register::RIP || base == Register::None && index == Register::None {
        return Instruction::with2(Code::Mov_r64_imm64, to, displacement);
    }
    let operand = MemoryOperand::new(
        base,
        index,
        instruction.memory_index_scale(),
        displacement.cast_signed(),
        8,
        false,
        Register::None,
    );
    Instruction::with2(Code::Lea_r64_m, to, operand)
}

/// The instruction with `[register]` for its operand.
fn aimed(instruction: &Instruction, register: Register) -> Instruction {
    let mut copy = *instruction;
    copy.set_memory_base(register);
    copy.set_memory_index(Register::None);
    copy.set_memory_index_scale(1);
    copy.set_memory_displacement64(0);
    copy.set_memory_displ_size(0);
    copy
}

/// What a [`super::wire::Site`] says of the accesses; `None` if they do not fit.
fn site(instruction: &Instruction) -> Option<([u64; 2], u64)> {
    let accesses = accesses(instruction);
    let mut events = [0; 2];
    if accesses.is_empty() || accesses.len() > events.len() {
        return None;
    }
    for (event, access) in events.iter_mut().zip(&accesses) {
        *event = u64::from(access.kind) << 32 | u64::from(access.size) << 48;
    }
    debug_assert!(accesses.len() == 1 || accesses[1].kind == STORE);
    Some((events, u64::from(accesses[0].size).checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FOR_PATCH;

    fn body_of(bytes: &[u8]) -> Body {
        let mut question = Question {
            asks: FOR_PATCH,
            ip: 0x40_0000,
            thunk: 0,
            delta: 0,
            len: bytes.len() as u64,
            bytes: [0x90; 16],
        };
        question.bytes[..bytes.len()].copy_from_slice(bytes);
        body(&question)
    }

    /// The instructions from an offset of the body on.
    fn decoded(body: &Body, from: u8, count: usize) -> Vec<String> {
        let code = &body.code[usize::from(from)..usize::from(body.len)];
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        (0..count)
            .map(|_| format!("{:?}", decoder.decode().code()))
            .collect()
    }

    #[test]
    fn a_load_runs_on_the_scratch_register() {
        // mov eax, [rdi + rcx * 4 - 8]
        let body = body_of(&[0x8b, 0x44, 0x8f, 0xf8]);
        assert_eq!(body.scratch, 6);
        let expected = ["Mov_r32_rm32", "Pop_r64", "Lea_r64_m", "Jmp_rm64"];
        assert_eq!(decoded(&body, body.run, 4), expected);
        let expected = ["Lea_r64_m", "Push_r64", "Lea_r64_m", "Push_r64"];
        assert_eq!(decoded(&body, 0, 4), expected);
        let site = usize::from(body.recorder) + 8;
        let word = |at: usize| {
            let bytes = body.code[site + at * 8..][..8].try_into().unwrap();
            u64::from_le_bytes(bytes)
        };
        assert_eq!(word(0), 0x40_0000);
        assert_eq!([word(1), word(2)], [u64::from(b'L') << 32 | 4 << 48, 0]);
        assert_eq!((word(3), usize::from(body.len)), (3, site + 32));
    }

    #[test]
    fn what_cannot_be_moved_to_a_register_is_refused() {
        let refused: [&[u8]; 8] = [
            &[0x48, 0x8b, 0x04, 0x24],             // mov rax, [rsp]
            &[0xff, 0x30],                         // push [rax]
            &[0xff, 0x14, 0x24],                   // call [rsp]
            &[0x0f, 0xab, 0x08],                   // bts [rax], ecx
            &[0x64, 0x8b, 0x00],                   // mov eax, fs:[rax]
            &[0xa4],                               // movsb
            &[0x67, 0x8b, 0x00],                   // mov eax, [eax]
            &[0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x08], // vgatherdps
        ];
        for bytes in refused {
            assert_eq!(body_of(bytes).len, 0, "{bytes:x?}");
        }
        // call [rax]
        let body = body_of(&[0xff, 0x10]);
        let expected = [
            "Mov_r64_rm64",
            "Xchg_rm64_r64",
            "Mov_rm32_imm32",
            "Mov_rm32_imm32",
            "Retnq_imm16",
        ];
        assert_eq!(decoded(&body, body.run, 5), expected);
        // Beside `ah` only registers without a prefix will do: `mov [rsi], ah` has `rbx`.
        assert_eq!(body_of(&[0x88, 0x26]).scratch, 3);
    }
}
