//! The text form: lines of MadT (III.G), raw or with names, and that of valgrind's lackey.

use std::io::{self, Write};

use super::names::Names;
use super::reader::Event;
use super::wire::{COPY, LOAD, STORE};

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Form {
    /// Names: `L$7:<malloc0014@main+25>+8,4,[heap],list.next,sum+55,list.c:12`
    Symbolic,
    /// Numbers: `L#7:0x55e0c2a0,4,[heap],0x55e0b1f7`
    Raw,
    /// As `valgrind --tool=lackey --trace-mem=yes` writes accesses, which `model simulate` reads
    Lackey,
}

/// Writes one event.
///
/// # Errors
///
/// Those of `out`.
pub fn line(form: Form, event: &Event, names: &mut Names, out: &mut dyn Write) -> io::Result<()> {
    let (kind, order) = (char::from(event.kind), event.order);
    match form {
        Form::Lackey if event.kind == LOAD || event.kind == STORE => {
            writeln!(out, " {kind} {:08x},{}", event.address, event.len)
        }
        Form::Lackey => Ok(()),
        Form::Raw => {
            let region = names.region(event.address);
            write!(
                out,
                "{kind}#{order}:{:#x},{},{region},{:#x}",
                event.address, event.len, event.ip
            )?;
            if event.from != 0 {
                write!(out, ",{:#x}", event.from)?;
            }
            writeln!(out, ",{}", event.thread)
        }
        Form::Symbolic => symbolic(event, names, out),
    }
}

fn symbolic(event: &Event, names: &mut Names, out: &mut dyn Write) -> io::Result<()> {
    let (kind, order) = (char::from(event.kind), event.order);
    let place = names.place(event.address);
    write!(out, "{kind}${order}:{}", place.name)?;
    if event.is_access() || event.kind == COPY {
        write!(out, "+{}", place.offset)?;
    }
    write!(out, ",{},{}", event.len, names.region(event.address))?;
    if let Some(name) = names.type_name(&place) {
        write!(out, ",{name}")?;
        if let Some(field) = names.field(&place) {
            write!(out, ".{field}")?;
        }
    }
    if event.from != 0 {
        let from = names.place(event.from);
        write!(out, ",from {}+{}", from.name, from.offset)?;
    }
    let (function, line) = names.instruction(event.ip);
    write!(out, ",{function}")?;
    if !line.is_empty() {
        write!(out, ",{line}")?;
    }
    writeln!(out)
}
