//! The text form: lines of MadT (III.G), raw or with names, and that of valgrind's lackey.

use std::io::{self, Write};

use super::names::Names;
use super::reader::Event;
use super::wire::{COPY, LOAD, STORE};
use ccscope::cli::shared::escaped;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
            let region = escaped(&region);
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
    write!(out, "{kind}${order}:{}", escaped(&place.name))?;
    if event.is_access() || event.kind == COPY {
        write!(out, "+{}", place.offset)?;
    }
    let region = names.region(event.address);
    write!(out, ",{},{}", event.len, escaped(&region))?;
    if let Some(name) = names.type_name(&place) {
        write!(out, ",{}", escaped(name))?;
        if let Some(field) = names.field(&place) {
            write!(out, ".{}", escaped(field))?;
        }
    }
    if event.from != 0 {
        let from = names.place(event.from);
        write!(out, ",from {}+{}", escaped(&from.name), from.offset)?;
    }
    let (function, line) = names.instruction(event.ip);
    write!(out, ",{}", escaped(function))?;
    if !line.is_empty() {
        write!(out, ",{}", escaped(line))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::super::names::Known;
    use super::super::reader::{Maps, Row};
    use super::*;

    #[test]
    fn names_of_strangers_forge_no_line() {
        let row = Row {
            start: 0x1000,
            end: 0x2000,
            rights: "rw-p".to_owned(),
            name: "/a\n L 00001000,8\u{1b}[2J\u{202e}".to_owned(),
        };
        let maps = Maps {
            rows: vec![row],
            modules: Vec::new(),
        };
        let mut names = Names::new(maps, std::iter::empty(), Known::default());
        let event = Event {
            kind: COPY,
            address: 0x1008,
            from: 0x1010,
            ..Event::default()
        };
        for form in [Form::Symbolic, Form::Raw, Form::Lackey] {
            let mut text = Vec::new();
            line(form, &event, &mut names, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.lines().count() <= 1, "{text}");
            let is_bad = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
            assert!(!text.contains(is_bad), "{text:?}");
        }
    }
}
