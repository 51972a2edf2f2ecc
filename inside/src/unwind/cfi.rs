//! Reads `.eh_frame`: how to get from the registers of a frame to those of its caller.
//!
//! The bytes come from files of strangers. Every read is bounded by the segment that holds the
//! section, all arithmetic wraps, and whatever is not understood is `None`.

/// Register numbers of DWARF.
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// Encodings of pointers, `DW_EH_PE_…`.
const OMITTED: u8 = 0xff;
const RELATIVE_TO_PLACE: u8 = 0x10;
const SORTED_TABLE: u8 = 0x3b;

/// How the frame of a function is left, at one instruction.
///
/// The *CFA* is the stack pointer of the caller right after the return; the return address lies
/// in the word below. `bp` says where the caller's `rbp` was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// CFA = rsp + `cfa`; rbp at CFA + `bp`, or unchanged if that is 0.
    Sp { cfa: i64, bp: i64 },
    /// CFA = rbp + `cfa`; rbp at CFA + `bp`, or unchanged if that is 0.
    Bp { cfa: i64, bp: i64 },
    /// A function that aligned its stack: CFA = the word at rbp + `cfa`; rbp at rbp + `bp`.
    Aligned { cfa: i64, bp: i64 },
    /// The return from a signal handler: all registers lie in the `ucontext` at rsp.
    Signal,
    /// The first function of a thread.
    End,
    /// Nothing is known; perhaps rbp is a frame pointer.
    Unknown,
}

impl Rule {
    /// As 33 bits: 2 for the kind, 20 and 11 for the offsets in words.
    pub(crate) fn pack(self) -> Option<u64> {
        let (kind, cfa, bp) = match self {
            Rule::Sp { cfa, bp } => (0, cfa, bp),
            Rule::Bp { cfa, bp } => (1, cfa, bp),
            Rule::Aligned { cfa, bp } => (2, cfa, bp),
            Rule::End => (3, 0, 0),
            Rule::Signal => (3, 8, 0),
            Rule::Unknown => (3, 16, 0),
        };
        let fits = |offset: i64, bits: u32| {
            offset % 8 == 0 && (-(1 << (bits - 1))..1 << (bits - 1)).contains(&(offset / 8))
        };
        let field = |offset: i64, bits: u32| (offset / 8).cast_unsigned() & ((1 << bits) - 1);
        (fits(cfa, 20) && fits(bp, 11)).then(|| kind | field(cfa, 20) << 2 | field(bp, 11) << 22)
    }

    /// What [`Rule::pack`] packed. Higher bits of `packed` are ignored.
    #[inline(always)]
    pub(crate) fn unpack(packed: u64) -> Self {
        // To the top and back extends the sign; three bits fewer multiply by eight.
        let cfa = (packed << 42).cast_signed() >> 44 << 3;
        let bp = (packed << 31).cast_signed() >> 53 << 3;
        match packed & 3 {
            0 => Rule::Sp { cfa, bp },
            1 => Rule::Bp { cfa, bp },
            2 => Rule::Aligned { cfa, bp },
            _ if cfa == 0 => Rule::End,
            _ if cfa == 8 => Rule::Signal,
            _ => Rule::Unknown,
        }
    }
}

/// Finds the rule for the instruction at `pc`.
///
/// `segment` is what is mapped from address `base` on, and `index` is the address of
/// `.eh_frame_hdr` therein.
pub(crate) fn rule(segment: &[u8], base: u64, index: u64, pc: u64) -> Option<Rule> {
    let file = Cursor {
        bytes: segment,
        base,
        at: 0,
    };
    let (mut fde, id) = file.entry(find(file, index, pc)?)?;
    let (mut cie, zero) = file.entry(id.position.checked_sub(u64::from(id.value))?)?;
    if id.value == 0 || zero.value != 0 {
        return None;
    }
    let common = Common::read(&mut cie)?;
    let start = fde.pointer(common.encoding)?;
    let len = fde.value(common.encoding & 0x0f)?;
    if pc.wrapping_sub(start) >= len {
        return None;
    }
    if common.augmented {
        let len = fde.uleb()?;
        fde.skip(len)?;
    }
    let unset = Row {
        cfa: Cfa::Unset,
        bp: Saved::Unset,
        ra: Saved::Unset,
    };
    let mut run = Run {
        common,
        pc,
        at: start,
        row: unset,
        initial: unset,
    };
    run.execute(cie)?;
    run.initial = run.row;
    run.execute(fde)?;
    run.row.rule(&common, pc)
}

/// Searches the sorted table of `.eh_frame_hdr` for the entry of the function that may contain
/// `pc`, and returns the address of that entry.
fn find(file: Cursor<'_>, index: u64, pc: u64) -> Option<u64> {
    let mut header = file.from(index)?;
    let [version, frame, count, table] = [header.u8()?, header.u8()?, header.u8()?, header.u8()?];
    if version != 1 || table != SORTED_TABLE || count == OMITTED || frame == OMITTED {
        return None;
    }
    header.value(frame & 0x0f)?;
    let count = header.pointer(count)?;
    let table = header.rest().chunks_exact(8);
    // Both numbers of an entry are offsets from the header.
    let number = |entry: &[u8], at: usize| {
        let bytes = entry.get(at..at + 4)?.try_into().ok()?;
        Some(i64::from(i32::from_le_bytes(bytes)))
    };
    let target = pc.wrapping_sub(index).cast_signed();
    let (mut low, mut high) = (0, count.min(table.len() as u64));
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = table.clone().nth(usize::try_from(middle).ok()?)?;
        if number(entry, 0)? <= target {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let entry = table
        .clone()
        .nth(usize::try_from(low.checked_sub(1)?).ok()?)?;
    Some(index.wrapping_add_signed(number(entry, 4)?))
}

/// What a CIE says for all its functions, without its instructions.
#[derive(Clone, Copy)]
struct Common {
    code: u64,
    data: i64,
    encoding: u8,
    augmented: bool,
    signal: bool,
}

impl Common {
    /// Leaves `cie` at its instructions.
    fn read(cie: &mut Cursor<'_>) -> Option<Self> {
        let version = cie.u8()?;
        let mut augmentation = *cie;
        while cie.u8()? != 0 {}
        let code = cie.uleb()?;
        let data = cie.sleb()?;
        let register = if version == 1 {
            u64::from(cie.u8()?)
        } else {
            cie.uleb()?
        };
        if !matches!(version, 1 | 3) || register != RETURN_ADDRESS {
            return None;
        }
        let mut common = Common {
            code,
            data,
            encoding: 0,
            augmented: false,
            signal: false,
        };
        let mut end = *cie;
        loop {
            match augmentation.u8()? {
                0 => break,
                b'z' => {
                    common.augmented = true;
                    let len = cie.uleb()?;
                    end = *cie;
                    end.skip(len)?;
                }
                b'R' => common.encoding = cie.u8()?,
                b'L' => _ = cie.u8()?,
                b'P' => {
                    let encoding = cie.u8()?;
                    cie.value(encoding & 0x0f)?;
                }
                b'S' => common.signal = true,
                _ => return None,
            }
        }
        if common.augmented {
            *cie = end;
        }
        Some(common)
    }
}

#[derive(Clone, Copy)]
enum Cfa<'a> {
    Unset,
    Register(u64, i64),
    Expression(&'a [u8]),
}

#[derive(Clone, Copy)]
enum Saved<'a> {
    Unset,
    /// At this offset from the CFA.
    At(i64),
    /// At the address that the expression gives.
    Expression(&'a [u8]),
    Undefined,
    Elsewhere,
}

#[derive(Clone, Copy)]
struct Row<'a> {
    cfa: Cfa<'a>,
    bp: Saved<'a>,
    ra: Saved<'a>,
}

impl Row<'_> {
    fn rule(&self, common: &Common, pc: u64) -> Option<Rule> {
        match (self.ra, self.cfa) {
            (Saved::Undefined, _) => return Some(Rule::End),
            (_, Cfa::Expression(_)) if common.signal => return Some(Rule::Signal),
            (Saved::At(-8), _) => {}
            _ => return None,
        }
        let bp = match self.bp {
            Saved::At(offset) if offset != 0 => Some(offset),
            Saved::Unset | Saved::Undefined => Some(0),
            _ => None,
        };
        Some(match self.cfa {
            Cfa::Register(RSP, cfa) => Rule::Sp { cfa, bp: bp? },
            Cfa::Register(RBP, cfa) => Rule::Bp { cfa, bp: bp? },
            // breg7 cfa; breg16 0; lit15; and; lit n; ge; lit3; shl; plus: an entry of the PLT
            // pushes a word before its instruction at n.
            Cfa::Expression(
                &[
                    0x77,
                    cfa,
                    0x80,
                    0,
                    0x3f,
                    0x1a,
                    n @ 0x30..0x40,
                    0x2a,
                    0x33,
                    0x24,
                    0x22,
                ],
            ) => {
                let pushed = if pc & 15 >= u64::from(n - 0x30) { 8 } else { 0 };
                Rule::Sp {
                    cfa: i64::from(cfa) + pushed,
                    bp: bp?,
                }
            }
            // breg6 cfa; deref
            Cfa::Expression(&[0x76, cfa, 0x06]) => match self.bp {
                // breg6 bp
                Saved::Expression(&[0x76, bp]) => Rule::Aligned {
                    cfa: sleb7(cfa)?,
                    bp: sleb7(bp)?,
                },
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// A signed LEB128 number of one byte.
fn sleb7(byte: u8) -> Option<i64> {
    (byte < 0x80).then(|| i64::from((byte << 1).cast_signed() >> 1))
}

/// Executes call frame instructions until the row for `pc`.
struct Run<'a> {
    common: Common,
    pc: u64,
    /// Where the row begins to hold.
    at: u64,
    row: Row<'a>,
    /// After the instructions of the CIE.
    initial: Row<'a>,
}

impl<'a> Run<'a> {
    fn execute(&mut self, mut code: Cursor<'a>) -> Option<()> {
        let mut remembered = [self.row; 8];
        let mut depth = 0;
        while !code.rest().is_empty() {
            let op = code.u8()?;
            let low = u64::from(op & 0x3f);
            match op {
                0x40..0x80 => self.advance(low),
                0x80..0xc0 => {
                    let offset = code.uleb()?.cast_signed();
                    self.save_at(low, offset);
                }
                0xc0.. => self.restore(low),
                // nop
                0x00 => {}
                // set_loc, advance_loc1, 2 and 4
                0x01 => self.at = code.pointer(self.common.encoding)?,
                0x02 => self.advance(u64::from(code.u8()?)),
                0x03 => self.advance(u64::from(code.u16()?)),
                0x04 => self.advance(u64::from(code.u32()?)),
                // offset_extended, offset_extended_sf, negative_offset_extended
                0x05 | 0x11 | 0x2f => {
                    let register = code.uleb()?;
                    let offset = match op {
                        0x05 => code.uleb()?.cast_signed(),
                        0x11 => code.sleb()?,
                        _ => code.uleb()?.cast_signed().wrapping_neg(),
                    };
                    self.save_at(register, offset);
                }
                // restore_extended
                0x06 => self.restore(code.uleb()?),
                // undefined, same_value
                0x07 => self.save(code.uleb()?, Saved::Undefined),
                0x08 => self.save(code.uleb()?, Saved::Unset),
                // register, val_offset, val_offset_sf
                0x09 | 0x14 | 0x15 => {
                    self.save(code.uleb()?, Saved::Elsewhere);
                    code.uleb()?;
                }
                // remember_state, restore_state
                0x0a => {
                    *remembered.get_mut(depth)? = self.row;
                    depth += 1;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    self.row = *remembered.get(depth)?;
                }
                // def_cfa, def_cfa_sf
                0x0c => self.row.cfa = Cfa::Register(code.uleb()?, code.uleb()?.cast_signed()),
                0x12 => {
                    let register = code.uleb()?;
                    self.row.cfa = Cfa::Register(register, self.scaled(code.sleb()?));
                }
                // def_cfa_register, def_cfa_offset, def_cfa_offset_sf
                0x0d | 0x0e | 0x13 => {
                    let Cfa::Register(register, offset) = self.row.cfa else {
                        return None;
                    };
                    self.row.cfa = match op {
                        0x0d => Cfa::Register(code.uleb()?, offset),
                        0x0e => Cfa::Register(register, code.uleb()?.cast_signed()),
                        _ => Cfa::Register(register, self.scaled(code.sleb()?)),
                    };
                }
                // def_cfa_expression, expression, val_expression
                0x0f => self.row.cfa = Cfa::Expression(code.block()?),
                0x10 => self.save(code.uleb()?, Saved::Expression(code.block()?)),
                0x16 => {
                    self.save(code.uleb()?, Saved::Elsewhere);
                    code.block()?;
                }
                // GNU_args_size
                0x2e => _ = code.uleb()?,
                _ => return None,
            }
            if self.at > self.pc {
                return Some(());
            }
        }
        Some(())
    }

    fn scaled(&self, factor: i64) -> i64 {
        factor.wrapping_mul(self.common.data)
    }

    fn advance(&mut self, delta: u64) {
        self.at = self.at.wrapping_add(delta.wrapping_mul(self.common.code));
    }

    fn save_at(&mut self, register: u64, factor: i64) {
        self.save(register, Saved::At(self.scaled(factor)));
    }

    fn save(&mut self, register: u64, how: Saved<'a>) {
        match register {
            RBP => self.row.bp = how,
            RETURN_ADDRESS => self.row.ra = how,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        let how = if register == RBP {
            self.initial.bp
        } else {
            self.initial.ra
        };
        self.save(register, how);
    }
}

/// The second word of an entry: 0 in a CIE, in an FDE how far before that word its CIE begins.
struct Id {
    value: u32,
    position: u64,
}

/// A place in the bytes that are mapped from address `base` on.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    base: u64,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn from(self, address: u64) -> Option<Self> {
        let at = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (at <= self.bytes.len()).then_some(Cursor { at, ..self })
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The CIE or FDE at `address`, after its second word; the cursor ends with the entry.
    fn entry(self, address: u64) -> Option<(Self, Id)> {
        let mut entry = self.from(address)?;
        let len = match entry.u32()? {
            0 => return None,
            u32::MAX => entry.u64()?,
            len => u64::from(len),
        };
        let mut end = entry;
        end.skip(len)?;
        entry.bytes = entry.bytes.get(..end.at)?;
        let position = entry.base + entry.at as u64;
        let value = entry.u32()?;
        Some((entry, Id { value, position }))
    }

    fn skip(&mut self, len: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(len).ok()?)?;
        (self.at <= self.bytes.len()).then_some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, _) = self.rest().split_first_chunk()?;
        self.at += N;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The bits of a LEB128 number, and how many there are.
    fn leb(&mut self) -> Option<(u64, u32)> {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.u8()?;
            if bits >= 64 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
            if byte < 0x80 {
                return Some((value, bits));
            }
        }
    }

    fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _)| value)
    }

    fn sleb(&mut self) -> Option<i64> {
        let (value, bits) = self.leb()?;
        let unused = 64_u32.saturating_sub(bits);
        Some((value << unused).cast_signed() >> unused)
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let len = self.uleb()?;
        let rest = self.rest();
        self.skip(len)?;
        rest.get(..usize::try_from(len).ok()?)
    }

    /// A number in the format of the low four bits of an encoding.
    fn value(&mut self, format: u8) -> Option<u64> {
        Some(match format {
            0x0 | 0x4 | 0xc => self.u64()?,
            0x1 => self.uleb()?,
            0x2 => u64::from(self.u16()?),
            0x3 => u64::from(self.u32()?),
            0x9 => self.sleb()?.cast_unsigned(),
            0xa => i64::from(self.u16()?.cast_signed()).cast_unsigned(),
            0xb => i64::from(self.u32()?.cast_signed()).cast_unsigned(),
            _ => return None,
        })
    }

    fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let place = self.base.wrapping_add(self.at as u64);
        let value = self.value(encoding & 0x0f)?;
        match encoding & 0xf0 {
            0 => Some(value),
            RELATIVE_TO_PLACE => Some(value.wrapping_add(place)),
            _ => None,
        }
    }
}
