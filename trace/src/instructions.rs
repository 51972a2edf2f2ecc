//! What an instruction accesses, and how it is aimed at other memory: the answers to the tracer.

use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, Encoder, Instruction,
    InstructionBlock, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use super::wire::{
    ACCESSES, Access, Answer, Elements, LOAD, MASKS, NO_BASE, Plan, Question, STORE, STRING_CMPS,
    STRING_LODS, STRING_MOVS, STRING_REP, STRING_REPNE, STRING_SCAS, STRING_STOS, THUNK,
};

/// Bytes of `jmp [rip]` and the address behind it.
const JUMP: usize = 14;

/// The answer to a question.
#[must_use]
pub fn answer(question: &Question) -> Answer {
    let len = usize::try_from(question.len)
        .unwrap_or(0)
        .min(question.bytes.len());
    let bytes = &question.bytes[..len];
    let instruction = Decoder::with_ip(64, bytes, question.ip, DecoderOptions::NONE).decode();
    let mut answer = Answer {
        plan: Plan::Step as u8,
        len: u8::try_from(instruction.len()).unwrap_or(0),
        code_len: 0,
        accesses_len: 0,
        accesses: [Access::default(); ACCESSES],
        string: 0,
        element: 0,
        displacement: 0,
        is_relative: 0,
        code: [0; THUNK],
    };
    if instruction.is_invalid() {
        return answer;
    }
    let accesses = accesses(&instruction);
    for (place, access) in answer.accesses.iter_mut().zip(&accesses) {
        *place = *access;
    }
    answer.accesses_len = u8::try_from(accesses.len().min(ACCESSES)).unwrap_or(0);
    if question.delta == 0 {
        // A breakpoint: the instruction runs elsewhere as it is.
        if instruction.mnemonic() == Mnemonic::Call {
            if let Some((code, target)) = moved_call(&instruction, question.thunk) {
                set_code(&mut answer, &code, target);
            }
        } else if let Some(code) = moved(&instruction, question.thunk) {
            set_code(&mut answer, &code, instruction.next_ip());
        }
    } else if let Some((string, element)) = string(&instruction) {
        (answer.plan, answer.string, answer.element) = (Plan::String as u8, string, element);
    } else if let Some(elements) = elements(&instruction) {
        answer.plan = Plan::Elements as u8;
        let bytes = bytes_of_elements(&elements);
        answer.code[..bytes.len()].copy_from_slice(&bytes);
        answer.code_len = u8::try_from(bytes.len()).unwrap_or(0);
    } else if let Some((code, displacement)) = aimed(&instruction, question) {
        if instruction.is_call_near_indirect() {
            answer.plan = Plan::Call as u8;
        } else {
            answer.displacement = displacement;
            answer.is_relative = instruction.is_ip_rel_memory_operand().into();
            set_code(&mut answer, &code, instruction.next_ip());
        }
    }
    answer
}

/// Makes a thunk of the code and a jump.
fn set_code(answer: &mut Answer, code: &[u8], next: u64) {
    let len = code.len() + JUMP;
    if len <= THUNK {
        answer.plan = Plan::Copy as u8;
        answer.code[..code.len()].copy_from_slice(code);
        answer.code[code.len()..][..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        answer.code[code.len() + 6..][..8].copy_from_slice(&next.to_le_bytes());
        answer.code_len = u8::try_from(len).unwrap_or(0);
    }
}

/// A call's bytes at another place, and where it leads to. It returns to behind the instruction:
/// unwinders do not know that place.
fn moved_call(instruction: &Instruction, to: u64) -> Option<(Vec<u8>, u64)> {
    // lea rsp, [rsp - 8]: flags stay.
    let mut code = vec![0x48, 0x8d, 0x64, 0x24, 0xf8];
    // mov dword ptr [rsp + ..], half of the address
    for (half, offset) in instruction.next_ip().to_le_bytes().chunks(4).zip([0, 4]) {
        code.extend([0xc7, 0x44, 0x24, offset]);
        code.extend(half);
    }
    if instruction.code() == Code::Call_rel32_64 {
        return Some((code, instruction.near_branch_target()));
    }
    if instruction.code() != Code::Call_rm64 {
        return None;
    }
    let mut jump = *instruction;
    jump.set_code(Code::Jmp_rm64);
    // The stack pointer is lower by now.
    if jump.op0_register() == Register::RSP || jump.memory_index() == Register::RSP {
        return None;
    }
    if jump.memory_base() == Register::RSP {
        jump.set_memory_displacement64(jump.memory_displacement64().wrapping_add(8));
        jump.set_memory_displ_size(8);
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&jump, to + code.len() as u64).ok()?;
    code.extend(encoder.take_buffer());
    Some((code, instruction.next_ip()))
}

/// The instruction's bytes at another place.
fn moved(instruction: &Instruction, to: u64) -> Option<Vec<u8>> {
    // These would be done in part where a signal comes.
    if instruction.is_loop() || instruction.is_loopcc() {
        return None;
    }
    let instructions = [*instruction];
    let block = InstructionBlock::new(&instructions, to);
    let done = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).ok()?;
    Some(done.code_buffer)
}

/// The instruction's bytes at the thunk's place, with its memory operand `delta` further on, and
/// where in them the displacement is, if it has four bytes. None if it has another memory operand
/// than one that it names, or the distance has no room.
fn aimed(instruction: &Instruction, question: &Question) -> Option<(Vec<u8>, u8)> {
    if !has_one_operand(instruction) {
        return None;
    }
    let [base, index] = [instruction.memory_base(), instruction.memory_index()];
    let mut copy = *instruction;
    let displacement = copy.memory_displacement64();
    let to = displacement.wrapping_add_signed(question.delta);
    if base == Register::RIP {
        copy.set_memory_displacement64(to);
    } else if is_far(copy.code()) {
        copy.set_memory_displacement64(to);
        copy.set_memory_displ_size(8);
    } else {
        i32::try_from(to.cast_signed()).ok()?;
        copy.set_memory_displacement64(to);
        copy.set_memory_displ_size(if base == Register::None && index == Register::None {
            4
        } else {
            8
        });
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&copy, question.thunk).ok()?;
    let place = encoder.get_constant_offsets();
    let has_four = place.has_displacement() && place.displacement_size() == 4;
    let displacement = place.displacement_offset() * usize::from(has_four);
    Some((encoder.take_buffer(), u8::try_from(displacement).ok()?))
}

/// Whether an instruction has one memory operand, which it names and which can be aimed elsewhere.
pub(super) fn has_one_operand(instruction: &Instruction) -> bool {
    let operands: Vec<OpKind> = instruction.op_kinds().collect();
    let memory = operands
        .iter()
        .filter(|kind| **kind == OpKind::Memory)
        .count();
    let implicit = operands.iter().any(|kind| {
        matches!(
            kind,
            OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        )
    });
    let is_32 = |register: Register| register.is_gpr32() || register == Register::EIP;
    let [base, index] = [instruction.memory_base(), instruction.memory_index()];
    // Elements of a gather may be in other memory; addresses of 32 bits do not reach the alias;
    // calls to other segments are not worth a plan. `xlat` names its operand, but has no
    // displacement.
    memory == 1
        && !implicit
        && !instruction.is_call_far_indirect()
        && !index.is_vector_register()
        && !is_32(base)
        && !is_32(index)
        && instruction.mnemonic() != Mnemonic::Xlatb
}

/// Whether the address has 64 bits in the instruction.
pub(super) fn is_far(code: Code) -> bool {
    matches!(
        code,
        Code::Mov_AL_moffs8
            | Code::Mov_AX_moffs16
            | Code::Mov_EAX_moffs32
            | Code::Mov_RAX_moffs64
            | Code::Mov_moffs8_AL
            | Code::Mov_moffs16_AX
            | Code::Mov_moffs32_EAX
            | Code::Mov_moffs64_RAX
    )
}

/// The accesses by the operand that an instruction names, a load before a store.
pub(super) fn accesses(instruction: &Instruction) -> Vec<Access> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let size = match instruction.memory_size().size() {
        // The processor's state.
        0 if is_state(instruction.mnemonic()) => state_size(),
        size => u16::try_from(size).unwrap_or(u16::MAX),
    };
    let mut accesses = Vec::new();
    // What the stack pointer implies is the stack's.
    for operand in (0..instruction.op_count()).filter(|&at| is_memory(instruction.op_kind(at))) {
        let access = |kind| Access {
            kind,
            operand: u8::try_from(operand).unwrap_or(0),
            size,
        };
        let (loads, stores) = match info.op_access(operand) {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            _ => (false, false),
        };
        accesses.extend(loads.then(|| access(LOAD)));
        accesses.extend(stores.then(|| access(STORE)));
    }
    accesses
}

fn is_memory(kind: OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn is_state(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Xrstor, Xrstor64, Xrstors, Xrstors64, Xsave, Xsave64, Xsavec, Xsavec64, Xsaveopt,
        Xsaveopt64, Xsaves, Xsaves64,
    };
    matches!(
        mnemonic,
        Xrstor
            | Xrstor64
            | Xrstors
            | Xrstors64
            | Xsave
            | Xsave64
            | Xsavec
            | Xsavec64
            | Xsaveopt
            | Xsaveopt64
            | Xsaves
            | Xsaves64
    )
}

/// Bytes of the state that this processor saves, with its largest vectors.
fn state_size() -> u16 {
    #[cfg(target_arch = "x86_64")]
    {
        const VECTORS_OF_64: u16 = 2688;
        const VECTORS_OF_32: u16 = 832;
        if std::arch::is_x86_feature_detected!("avx512f") {
            return VECTORS_OF_64;
        }
        if std::arch::is_x86_feature_detected!("avx") {
            return VECTORS_OF_32;
        }
    }
    576
}

/// For a gather or scatter: where its elements are.
fn elements(instruction: &Instruction) -> Option<Elements> {
    use Mnemonic::{
        Vgatherdpd, Vgatherdps, Vgatherqpd, Vgatherqps, Vpgatherdd, Vpgatherdq, Vpgatherqd,
        Vpgatherqq, Vpscatterdd, Vpscatterdq, Vpscatterqd, Vpscatterqq, Vscatterdpd, Vscatterdps,
        Vscatterqpd, Vscatterqps,
    };
    let (index_size, kind) = match instruction.mnemonic() {
        Vgatherdpd | Vgatherdps | Vpgatherdd | Vpgatherdq => (4, LOAD),
        Vgatherqpd | Vgatherqps | Vpgatherqd | Vpgatherqq => (8, LOAD),
        Vscatterdpd | Vscatterdps | Vpscatterdd | Vpscatterdq => (4, STORE),
        Vscatterqpd | Vscatterqps | Vpscatterqd | Vpscatterqq => (8, STORE),
        _ => return None,
    };
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    // Other addresses are too rare; what is stepped is told by page.
    if instruction.segment_prefix() != Register::None
        || !(base.is_gpr64() || base == Register::None)
    {
        return None;
    }
    let vector = instruction.op_register(u32::from(kind == STORE));
    let size = instruction.memory_size().size();
    let count = (vector.size() / size).min(index.size() / index_size);
    let byte = |number: usize| u8::try_from(number).ok();
    let mask = match instruction.op_mask() {
        Register::None => byte(instruction.op2_register().number())?,
        mask => MASKS + byte(mask.number())?,
    };
    Some(Elements {
        displacement: instruction.memory_displacement64().cast_signed(),
        base: if base == Register::None {
            NO_BASE
        } else {
            byte(base.number())?
        },
        index: byte(index.number())?,
        scale: byte(instruction.memory_index_scale() as usize)?,
        index_size: byte(index_size)?,
        size: byte(size)?,
        count: byte(count)?,
        mask,
        kind,
    })
}

/// As the tracer reads them.
fn bytes_of_elements(elements: &Elements) -> Vec<u8> {
    let mut bytes = elements.displacement.to_le_bytes().to_vec();
    bytes.extend([
        elements.base,
        elements.index,
        elements.scale,
        elements.index_size,
        elements.size,
        elements.count,
        elements.mask,
        elements.kind,
    ]);
    bytes
}

/// For a string instruction: which, and bytes of an element.
fn string(instruction: &Instruction) -> Option<(u8, u8)> {
    use Mnemonic::{
        Cmpsb, Cmpsd, Cmpsq, Cmpsw, Lodsb, Lodsd, Lodsq, Lodsw, Movsb, Movsd, Movsq, Movsw, Scasb,
        Scasd, Scasq, Scasw, Stosb, Stosd, Stosq, Stosw,
    };
    let (operation, element) = match instruction.mnemonic() {
        Movsb => (STRING_MOVS, 1),
        Movsw => (STRING_MOVS, 2),
        Movsd => (STRING_MOVS, 4),
        Movsq => (STRING_MOVS, 8),
        Stosb => (STRING_STOS, 1),
        Stosw => (STRING_STOS, 2),
        Stosd => (STRING_STOS, 4),
        Stosq => (STRING_STOS, 8),
        Lodsb => (STRING_LODS, 1),
        Lodsw => (STRING_LODS, 2),
        Lodsd => (STRING_LODS, 4),
        Lodsq => (STRING_LODS, 8),
        Cmpsb => (STRING_CMPS, 1),
        Cmpsw => (STRING_CMPS, 2),
        Cmpsd => (STRING_CMPS, 4),
        Cmpsq => (STRING_CMPS, 8),
        Scasb => (STRING_SCAS, 1),
        Scasw => (STRING_SCAS, 2),
        Scasd => (STRING_SCAS, 4),
        Scasq => (STRING_SCAS, 8),
        _ => return None,
    };
    // `movsd` and `cmpsd` are names of vector instructions, too; addresses of 32 bits and segments
    // are rare enough to be stepped.
    let is_plain = instruction.op_kinds().all(|kind| {
        matches!(
            kind,
            OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::Register
        )
    });
    let is_string = instruction.is_string_instruction();
    if !is_plain || !is_string || instruction.segment_prefix() != Register::None {
        return None;
    }
    let repeats = match (instruction.has_rep_prefix(), instruction.has_repne_prefix()) {
        (true, _) => STRING_REP,
        // For those that do not compare, both are the same.
        (_, true) if operation < STRING_CMPS => STRING_REP,
        (_, true) => STRING_REPNE,
        _ => 0,
    };
    Some((operation | repeats, element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FOR_THUNK;

    /// The thunk's instructions for one that has a breakpoint.
    fn moved_to(bytes: &[u8]) -> Vec<Instruction> {
        let mut question = Question {
            asks: FOR_THUNK,
            ip: 0x40_0000,
            thunk: 0x50_0000,
            delta: 0,
            len: bytes.len() as u64,
            bytes: [0x90; 16],
        };
        question.bytes[..bytes.len()].copy_from_slice(bytes);
        let answer = answer(&question);
        let code = &answer.code[..usize::from(answer.code_len).saturating_sub(8)];
        let decoder = Decoder::with_ip(64, code, question.thunk, DecoderOptions::NONE);
        decoder.into_iter().collect()
    }

    #[test]
    fn a_moved_call_returns_to_the_program() {
        use Register::{None, RIP, RSP};
        let cases: [(&[u8], Register, u64); 4] = [
            (&[0xe8, 0, 1, 0, 0], RIP, 0x50_001b),
            (&[0xff, 0xd0], None, 0),
            (&[0xff, 0x54, 0x24, 0x10], RSP, 0x18),
            (&[0xff, 0x15, 0, 1, 0, 0], RIP, 0x40_0106),
        ];
        for (bytes, base, displacement) in cases {
            let code = moved_to(bytes);
            let next = 0x40_0000 + bytes.len() as u64;
            assert_eq!(code[0].memory_displacement64(), 8_u64.wrapping_neg());
            assert_eq!(u64::from(code[1].immediate32()), next);
            assert_eq!(code[3].code(), Code::Jmp_rm64);
            assert_eq!(code[3].memory_base(), base);
            assert_eq!(code[3].memory_displacement64(), displacement);
        }
        assert!(moved_to(&[0xff, 0xd4]).is_empty());
        assert_eq!(moved_to(&[0x53])[0].code(), Code::Push_r64);
    }
}
