//! The command line, and what it does.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::mem;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{CommandFactory, Parser};
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::names::{Known, Names, without_parameters};
use crate::reader::{Counts, Event, Maps, Reader};
use crate::server::Server;
use crate::text::{self, Form};
use crate::{import, wire};
use ccscope::cli::shared::{
    ALONE, CliError, Program, alone, answer_or_refuse, check_output, code_of, create, demangle,
    escaped, exit_code, fail, find_program, hand_on_to, install, is_stream, not_over_itself, obey,
    outlive, preload, usage,
};
use ccscope::profile::Run;

mod pages;

/// Kinds of memory, as the tracer has them.
const HEAP: u64 = 1;
const DATA: u64 = 2;
const BSS: u64 = 4;
/// Tracing is on from the start.
const AT_ONCE: u64 = 8;
/// Instructions that fault often are patched.
const PATCH: u64 = 16;

/// Record every load and store of a program as it is
#[derive(Debug, Parser)]
#[command(name = "ccscope trace", bin_name = "ccscope trace", version, about)]
#[command(after_help = "Examples:
  ccscope trace -o sort.trace ./sort                     every access, with names
  ccscope trace --from findDisparity -o d.trace ./disparity    only while it runs
  ccscope trace -o d.ccscope ./disparity                 a picture of the pages: ccscope report
  ccscope trace --form lackey -o sort.txt ./sort && model simulate --trace sort.txt
  ccscope trace --import lackey.txt -o lackey.parquet    the trace of another tool as a table

From `--from`'s call to its return, or to the first call of `--to`, accesses are recorded; without
both, from the start. A program may also call ccscope_trace_start() and ccscope_trace_stop().")]
struct TraceArgs {
    /// Write the trace here: as a table if it ends with `.parquet`, and if it ends with `.ccscope`
    /// a profile of the accesses of each page, for `ccscope report`; `-` is the standard output;
    /// without it, PROGRAM.PID.trace in the current folder. Of further processes the number is
    /// put before the ending
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How a text looks
    #[arg(long, value_enum, value_name = "FORM", default_value = "symbolic")]
    form: Form,
    /// Start when this function of the program is called
    #[arg(long, value_name = "FUNCTION")]
    from: Option<String>,
    /// Stop when this function of the program is called
    #[arg(long, value_name = "FUNCTION", requires = "from")]
    to: Option<String>,
    /// Start when the program calls `ccscope_trace_start()`, in Rust `ccscope::trace_start()`
    #[arg(long)]
    paused: bool,
    /// Only this kind of memory: `heap`, `data` or `bss`; or only what was allocated by this
    /// function, or is of this type
    #[arg(long, value_name = "WHAT")]
    only: Option<String>,
    /// Trace one of N parts of the memory, of 64 KiB each, chosen by their address
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Patch instructions that fault often, so that they record their accesses without a fault
    #[arg(long)]
    patch: bool,
    /// Stop after so many events of a process, of 32 bytes each until they are written as text
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    most: u64,
    /// Write the traces of at most N other processes, those with the most events
    #[arg(long, value_name = "N", default_value_t = 16)]
    processes: usize,
    /// Keep the program's arguments in a profile: they may hold passwords, and are left out
    /// otherwise
    #[arg(long)]
    keep_arguments: bool,
    /// Do not say how many events there were
    #[arg(short, long)]
    quiet: bool,
    /// Read this trace of valgrind's lackey, or text of DynamoRIO, in place of running a program
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["from", "to", "only", "every", "most", "processes"])]
    #[arg(conflicts_with_all = ["patch", "paused"])]
    import: Option<PathBuf>,
    /// Print the script that completes this command line in a shell
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<clap_complete::Shell>,
    /// Print a manual page, in roff
    #[arg(long, exclusive = true)]
    man: bool,
    /// The program and its arguments
    #[arg(required_unless_present_any = ["import", "completions", "man"])]
    #[arg(conflicts_with = "import")]
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

const TRACER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_tracer.so"));
const TRACER_NAME: &str = "libccscope_tracer.so";

/// Runs one command line of `ccscope-trace`, the program's name first; returns the exit code, as
/// [`ccscope::cli`] has it.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = match TraceArgs::try_parse_from(args) {
        Ok(args) => execute(&args, out, err),
        Err(error) => answer_or_refuse(&error, out),
    };
    code_of("ccscope", result, err)
}

fn execute(args: &TraceArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, CliError> {
    // Into memory first: the generators panic where they cannot write.
    let mut text = Vec::new();
    if let Some(shell) = args.completions {
        clap_complete::generate(shell, &mut TraceArgs::command(), "ccscope-trace", &mut text);
    }
    if args.man {
        clap_mangen::Man::new(TraceArgs::command()).render(&mut text)?;
    }
    if text.is_empty() {
        return traced(args, out, err);
    }
    out.write_all(&text)?;
    out.flush()?;
    Ok(0)
}

fn traced(args: &TraceArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, CliError> {
    if let Some(path) = &args.import {
        return imported(args, path, out, err);
    }
    let (name, rest) = args.command.split_first().expect("clap asks for it");
    let program = find_program(name)?;
    if let Some(why) = &program.aside {
        return alone(&program, name, rest, why, err);
    }
    check_output(args.output.as_deref())?;
    check_form(args.output.as_deref())?;
    let mut options = String::new();
    for (option, function) in [("from", &args.from), ("to", &args.to)] {
        if let Some(function) = function {
            let place = place_of(&program, function)?;
            // As `/proc/self/maps` has it.
            let path = program.path.canonicalize()?;
            options.push_str(&format!("{option}={place:x}:{}\n", path.display()));
        }
    }
    let at_once = if args.from.is_some() || args.paused {
        0
    } else {
        AT_ONCE
    };
    let patch = if args.patch { PATCH } else { 0 };
    let server = Server::start()?;
    let folder = server.folder().display();
    options.push_str(&format!(
        "folder={folder}\noptions={:x}\nmost={:x}\nevery={:x}\n",
        kinds(args) | at_once | patch,
        args.most,
        args.every
    ));
    let tracer = install(&[(TRACER_NAME, TRACER)], &[])?.join(TRACER_NAME);
    let mut command = Command::new(&program.path);
    command.arg0(name).args(rest).env("CCSCOPE_TRACE", options);
    command.env("LD_PRELOAD", preload(&tracer, env::var_os("LD_PRELOAD")));
    outlive();
    let mut child = command
        .spawn()
        .map_err(|why| format!("cannot start {}: {why}", program.path.display()))?;
    let pid = child.id();
    let begun = pages::Begun::new(args, pid);
    hand_on_to(pid);
    let status = child.wait();
    obey();
    let status = status?;
    let begun = begun.end(status);
    let said = server.said();
    for line in &said {
        writeln!(err, "ccscope: trace: {}", escaped(line))?;
    }
    let files = server.files(pid)?;
    if files.is_empty() && said.iter().any(|line| line.contains(ALONE)) {
        return Ok(exit_code(status));
    }
    if files.is_empty() {
        let question = if said.is_empty() {
            ": does it clear LD_PRELOAD?"
        } else {
            ""
        };
        return fail(format!("the program left no trace{question}"));
    }
    let mut out = Some(out);
    let mut others = Vec::new();
    for file in &files[1..] {
        // A process that has just been made may not have written its file's start yet.
        if let Ok(reader) = Reader::open(file) {
            others.push((reader.counts.events, file));
        }
    }
    others.sort_by_key(|it| std::cmp::Reverse(it.0));
    others.truncate(args.processes);
    let stream = args.output.as_ref().filter(|path| is_stream(path));
    if let Some(path) = stream.filter(|_| !others.is_empty()) {
        let (count, path) = (others.len(), path.display());
        writeln!(
            err,
            "ccscope: no traces of {count} other processes: {path} is no file"
        )?;
        others.clear();
    }
    let kept = [&files[0]]
        .into_iter()
        .chain(others.into_iter().map(|it| it.1));
    let mut known = Known::default();
    for (at, file) in kept.enumerate() {
        let reader = Reader::open(file)?;
        let is_std = args.output.as_deref() == Some(Path::new("-"));
        let path = path_of(args, &program, file, at == 0);
        let out = if at == 0 && is_std { out.take() } else { None };
        let counts = reader.counts;
        let maps = Maps::of(file);
        let regions = maps.rows.len();
        let sums = write(args, file, (maps, &mut known), &path, out, &begun)?;
        if let Some(function) = args.from.as_ref().filter(|_| at == 0 && counts.faults == 0) {
            writeln!(err, "ccscope: nothing was traced: was {function} called?")?;
        }
        if let Some(wanted) = args.only.as_ref().filter(|_| at == 0 && sums.is_empty()) {
            writeln!(
                err,
                "ccscope: no event is of {wanted}: no function that allocates, no type"
            )?;
        }
        if !args.quiet {
            say(&path, counts, regions, &sums, err)?;
        }
    }
    Ok(exit_code(status))
}

/// Refuses a table before the program runs, if this tool cannot write one.
fn check_form(path: Option<&Path>) -> Result<(), CliError> {
    let is_table = path
        .and_then(Path::extension)
        .is_some_and(|ending| ending == "parquet");
    if is_table && !cfg!(feature = "parquet") {
        return usage("this ccscope-trace is built without the feature `parquet`");
    }
    Ok(())
}

/// Where the trace of a process goes: its number is in the name, and behind it, if the process has
/// become another program before, for which time.
fn path_of(args: &TraceArgs, program: &Program, file: &Path, is_first: bool) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let number = match stem.split_once('.') {
        Some((pid, "0")) => pid.to_owned(),
        Some((pid, turn)) => format!("{pid}-{turn}"),
        None => stem.into_owned(),
    };
    match &args.output {
        Some(path) if is_first => path.clone(),
        Some(path) if path != Path::new("-") => {
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            path.with_extension(format!("{number}.{ending}"))
        }
        _ => {
            let name = program.path.file_name().unwrap_or_default();
            PathBuf::from(format!("{}.{number}.trace", name.to_string_lossy()))
        }
    }
}

/// What is traced.
fn kinds(args: &TraceArgs) -> u64 {
    match args.only.as_deref() {
        Some("heap") => HEAP,
        Some("data") => DATA,
        Some("bss") => BSS,
        _ => HEAP | DATA | BSS,
    }
}

/// Where a function lies above the first page of its file.
fn place_of(program: &Program, function: &str) -> Result<u64, CliError> {
    let bytes = fs::read(&program.path)?;
    let Ok(file) = object::File::parse(&*bytes) else {
        let path = program.path.display();
        return usage(format!(
            "{path} is a script: --from and --to need the program that runs it"
        ));
    };
    let first = file
        .segments()
        .map(|segment| segment.address())
        .min()
        .unwrap_or(0)
        & !0xfff;
    let of_name = |is: &dyn Fn(&str) -> bool| {
        let mut all = file.symbols().chain(file.dynamic_symbols());
        let found = all.find(|symbol| {
            symbol.kind() == SymbolKind::Text
                && symbol.address() != 0
                && symbol.name().is_ok_and(is)
        });
        found.map(|symbol| symbol.address() - first)
    };
    // As it is in the file, as its language writes it, or without arguments and its first modules.
    let found = of_name(&|name| name == function)
        .or_else(|| of_name(&|name| demangle(name) == function))
        .or_else(|| {
            of_name(&|name| {
                let name = demangle(name);
                let name = without_parameters(&name);
                let rest = name.strip_suffix(function);
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
            })
        });
    match found {
        Some(place) => Ok(place),
        None => usage(format!(
            "{} has no function {function} in its symbol table",
            program.path.display()
        )),
    }
}

/// Whether a profile is written there.
fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ccscope")
}

/// Numbers of events by their letters.
type Sums = BTreeMap<u8, u64>;

/// Where a trace goes.
enum Sink<'w> {
    Text(Form, Box<dyn Write + 'w>),
    #[cfg(feature = "parquet")]
    Table(Box<crate::tables::Table>),
    Pages(Box<pages::Recording>),
}

impl<'w> Sink<'w> {
    fn new(
        args: &TraceArgs,
        path: &Path,
        out: Option<&'w mut dyn Write>,
        run: Option<(&Run, Counts)>,
    ) -> Result<Sink<'w>, CliError> {
        let failed = |why: io::Error| format!("{} cannot be written: {why}", path.display());
        if let Some(out) = out {
            return Ok(Sink::Text(args.form, Box::new(BufWriter::new(out))));
        }
        if path.extension().is_some_and(|ending| ending == "parquet") {
            #[cfg(feature = "parquet")]
            return Ok(Sink::Table(Box::new(
                crate::tables::Table::new(path).map_err(failed)?,
            )));
            #[cfg(not(feature = "parquet"))]
            return usage("this ccscope-trace is built without the feature `parquet`");
        }
        if is_profile(path) {
            let Some((run, counts)) = run else {
                return usage("a profile is made of a run, not of another tool's trace");
            };
            let recording = pages::Recording::new(args, path, run, counts);
            return Ok(Sink::Pages(Box::new(recording)));
        }
        let file = create(path).map_err(failed)?;
        Ok(Sink::Text(args.form, Box::new(BufWriter::new(file))))
    }

    fn add(&mut self, event: &Event, names: &mut Names) -> io::Result<()> {
        match self {
            Sink::Text(form, out) => text::line(*form, event, names, out),
            #[cfg(feature = "parquet")]
            Sink::Table(table) => table.add(event, names),
            Sink::Pages(recording) => {
                recording.add(event);
                Ok(())
            }
        }
    }

    fn finish(self, names: &Names) -> Result<(), CliError> {
        match self {
            Sink::Text(_, mut out) => out.flush()?,
            #[cfg(feature = "parquet")]
            Sink::Table(table) => table.finish()?,
            Sink::Pages(recording) => recording.finish(names)?,
        }
        Ok(())
    }
}

fn write(
    args: &TraceArgs,
    file: &Path,
    (maps, known): (Maps, &mut Known),
    path: &Path,
    out: Option<&mut dyn Write>,
    run: &Run,
) -> Result<Sums, CliError> {
    let events = Reader::open(file)?;
    let mut names = Names::new(maps, Reader::open(file)?, mem::take(known));
    let wanted = args
        .only
        .as_deref()
        .filter(|it| !["heap", "data", "bss"].contains(it));
    let mut sink = Sink::new(args, path, out, Some((run, events.counts)))?;
    let mut sums = Sums::new();
    for event in events {
        names.note(&event);
        if wanted.is_none_or(|wanted| is_of(&event, wanted, &names)) {
            *sums.entry(event.kind).or_default() += 1;
            sink.add(&event, &mut names)?;
        }
    }
    sink.finish(&names)?;
    *known = names.known;
    Ok(sums)
}

/// Whether an event is of memory that `wanted` allocated, or of that type.
fn is_of(event: &Event, wanted: &str, names: &Names) -> bool {
    [event.address, event.from].iter().any(|&address| {
        let place = names.place(address);
        let site = place.site.map_or("", |site| &names.sites[site].name);
        site.rsplit_once('+').is_some_and(|it| it.0 == wanted) || { names.type_name(&place) }
            .is_some_and(|name| name.contains(wanted))
    })
}

/// The names of the letters. The first five are those of MadT's table III, and said even if there
/// are none.
const LETTERS: [(u8, &str); 17] = [
    (wire::LOAD, "loads"),
    (wire::STORE, "stores"),
    (wire::COPY, "blocks copied"),
    (wire::FILL, "blocks stored"),
    (wire::FETCH, "blocks fetched"),
    (wire::MALLOC, "malloc"),
    (wire::CALLOC, "calloc"),
    (wire::REALLOC, "realloc"),
    (wire::FREE, "free"),
    (wire::MMAP, "mmap"),
    (wire::MREMAP, "mremap"),
    (wire::MUNMAP, "munmap"),
    (wire::THREAD, "threads"),
    (wire::ENDED, "threads ended"),
    (wire::FORK, "processes"),
    (wire::EXEC, "programs"),
    (wire::SIGNAL, "signals"),
];

fn say(
    path: &Path,
    counts: Counts,
    regions: usize,
    sums: &Sums,
    err: &mut dyn Write,
) -> io::Result<()> {
    const ALWAYS: usize = 5;
    let mut parts = vec![format!("{regions} memory regions")];
    for (at, (letter, name)) in LETTERS.iter().enumerate() {
        let number = sums.get(letter).copied().unwrap_or(0);
        if at < ALWAYS || number > 0 {
            parts.push(format!("{number} {name}"));
        }
    }
    writeln!(
        err,
        "ccscope: {}: process {}: {}",
        path.display(),
        counts.pid,
        parts.join(", ")
    )?;
    for (number, what) in [
        (
            counts.stepped,
            "accesses were made in place, with the page open: other threads' were missed meanwhile",
        ),
        (
            counts.emulated,
            "instructions were carried out by the tracer",
        ),
        (
            counts.patched,
            &*format!(
                "instructions were patched; {} accesses faulted",
                counts.faults
            ),
        ),
        (
            counts.left_out,
            "mappings were not traced: too large, or of code",
        ),
        (
            counts.lost,
            "events had no room: tracing stopped (--most has more)",
        ),
    ] {
        if number > 0 {
            writeln!(err, "ccscope:   {number} {what}")?;
        }
    }
    if is_profile(path) {
        let path = path.display();
        writeln!(
            err,
            "ccscope:   see `ccscope report {path}` for a browser, `ccscope show {path}`"
        )?;
    }
    Ok(())
}

/// Writes the trace of another tool.
fn imported(
    args: &TraceArgs,
    path: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let Some(output) = &args.output else {
        return usage("an imported trace needs a place: add -o FILE");
    };
    not_over_itself(path, output)?;
    let file =
        File::open(path).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    let mut names = Names::new(Maps::default(), std::iter::empty(), Known::default());
    let out = (output == Path::new("-")).then_some(out);
    let mut sink = Sink::new(args, output, out, None)?;
    let mut sums = Sums::new();
    let others = import::read(BufReader::new(file), |event| {
        *sums.entry(event.kind).or_default() += 1;
        sink.add(event, &mut names)
    })?;
    sink.finish(&names)?;
    if sums.is_empty() {
        return fail(format!("{} has no line of an access", path.display()));
    }
    if !args.quiet {
        let number = |kind| sums.get(&kind).copied().unwrap_or(0);
        let (loads, stores) = (number(wire::LOAD), number(wire::STORE));
        writeln!(
            err,
            "ccscope: {loads} loads, {stores} stores, {others} other lines"
        )?;
    }
    Ok(0)
}
