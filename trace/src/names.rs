//! Names of addresses: functions, variables, and the forged names of allocations (MadT, table II).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::{Object, ObjectSymbol, SymbolKind};

use super::reader::{Event, Maps, Row, path_of};
use super::wire;
use ccscope::cli::shared::{demangle, short_function};
use ccscope::profile::{Frame, Type};
use ccscope::symbols::{Loaded, Symbols, place};
use ccscope::types::Types;

/// A function or variable at its place in the process.
#[derive(Clone, Debug)]
struct Symbol {
    start: u64,
    end: u64,
    name: Rc<str>,
    /// Of a variable that is accessed: index into [`Names::types`].
    type_id: Option<u32>,
}

/// An allocation point.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The function of the user's code that allocates, with the offset of the call.
    pub name: String,
    /// `file:line` of the call, if known.
    pub line: String,
    /// Index into [`Names::types`].
    pub type_id: u32,
}

/// An allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Counted from 0 through all allocations of the process.
    pub number: u64,
    /// The first six letters of its name.
    prefix: &'static str,
    /// First byte.
    pub start: u64,
    /// Bytes that were asked for.
    pub len: u64,
    /// Index into [`Names::sites`].
    pub site: usize,
}

/// What an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Variable, chunk or mapping.
    pub name: String,
    /// Bytes from its start.
    pub offset: u64,
    /// The chunk's number.
    pub chunk: Option<u64>,
    /// Index into [`Names::sites`].
    pub site: Option<usize>,
    /// Index into [`Names::types`].
    pub type_id: Option<u32>,
}

/// What executables and libraries have told, for all processes of a run.
#[derive(Debug, Default)]
pub struct Known {
    symbols: Symbols,
    /// Functions and variables of each file, at their addresses there.
    tables: HashMap<PathBuf, [Vec<Symbol>; 2]>,
}

/// All that has a name, at one moment of the trace.
#[derive(Debug)]
pub struct Names {
    maps: Maps,
    loaded: Vec<Loaded>,
    /// For the next process.
    pub known: Known,
    functions: Vec<Symbol>,
    variables: Vec<Symbol>,
    /// Of each instruction: its function with offset, and its line.
    lines: HashMap<u64, (String, String)>,
    /// Chunks by their start, also freed ones that nobody has taken the place of.
    chunks: BTreeMap<u64, Chunk>,
    allocations: u64,
    /// Allocation points.
    pub sites: Vec<Site>,
    /// By the callers of the allocation.
    site_of: HashMap<Vec<u64>, usize>,
    /// What allocation points allocate, and types of variables.
    pub types: Vec<Type>,
    /// By index: names of arrays behind a type's size.
    tails: HashMap<usize, String>,
}

impl Names {
    /// Reads the symbol tables of the process's modules that are not `known`; `events` are all of
    /// its events, which tell who allocates, and which variables are accessed.
    pub fn new(maps: Maps, events: impl Iterator<Item = Event>, mut known: Known) -> Names {
        known.symbols.begin_process();
        let (mut functions, mut variables) = (Vec::new(), Vec::new());
        for module in &maps.modules {
            let path = path_of(module);
            let tables = { known.tables.entry(path) }.or_insert_with_key(|path| tables(path));
            for (list, table) in [&mut functions, &mut variables].into_iter().zip(tables) {
                list.extend(table.iter().map(|symbol| {
                    Symbol {
                        start: module.bias.wrapping_add(symbol.start),
                        end: (module.bias.wrapping_add(symbol.start))
                            .saturating_add(symbol.end - symbol.start),
                        ..symbol.clone()
                    }
                }));
            }
        }
        for list in [&mut functions, &mut variables] {
            // Of several names for one place, the first that a linker would show.
            list.sort_by(|a, b| (a.start, b.end, &a.name).cmp(&(b.start, a.end, &b.name)));
            list.dedup_by_key(|symbol| symbol.start);
        }
        let loaded = maps.modules.iter().map(Loaded::new).collect();
        let mut names = Names {
            maps,
            loaded,
            known,
            functions,
            variables,
            lines: HashMap::new(),
            chunks: BTreeMap::new(),
            allocations: 0,
            sites: Vec::new(),
            site_of: HashMap::new(),
            types: Vec::new(),
            tails: HashMap::new(),
        };
        names.find_sites(events);
        names
    }

    /// Finds allocation points and what they allocate, and the types of accessed variables.
    fn find_sites(&mut self, events: impl Iterator<Item = Event>) {
        let mut frames: Vec<Frame> = Vec::new();
        let mut stacks: Vec<Vec<u32>> = Vec::new();
        // Indices of variables.
        let mut accessed: HashSet<usize> = HashSet::new();
        for event in events {
            if prefix(event.kind).is_none() {
                let places = [event.address, event.from];
                accessed.extend(
                    places
                        .iter()
                        .filter_map(|&at| symbol_at(&self.variables, at)),
                );
                continue;
            }
            let key = stack_of(&event);
            if self.site_of.contains_key(&key) {
                continue;
            }
            let mut stack = Vec::new();
            for &pc in &key {
                for frame in self.known.symbols.frames(pc, &self.loaded) {
                    stack.push(u32::try_from(frames.len()).expect("there are fewer frames"));
                    frames.push(frame);
                }
            }
            // The return address of the user's frame says where the call is.
            let own = place(&stack, &frames).map_or(0, |it| it as usize);
            let pc = { key.iter() }
                .find(|&&pc| {
                    self.known
                        .symbols
                        .frames(pc, &self.loaded)
                        .contains(&frames[own])
                })
                .copied()
                .unwrap_or(event.ip);
            let line = line_of(&frames[own]);
            let name = self.function(pc);
            self.sites.push(Site {
                name,
                line,
                type_id: 0,
            });
            self.site_of.insert(key, stacks.len());
            stacks.push(stack);
        }
        let mut types = Types::default();
        let places: Vec<Option<u32>> = stacks.iter().map(|it| place(it, &frames)).collect();
        types.learn(
            places.iter().flatten().map(|&it| &frames[it as usize]),
            &self.known.symbols,
        );
        for ((site, stack), place) in self.sites.iter_mut().zip(&stacks).zip(places) {
            site.type_id = types.of_stack(stack, place, &frames);
        }
        types.complete(&self.known.symbols);
        self.find_types(&accessed, &mut types);
        self.types = types.list;
        self.tails = types.tails;
    }

    /// Finds the types of variables with these indices.
    fn find_types(&mut self, accessed: &HashSet<usize>, types: &mut Types) {
        for module in &self.maps.modules {
            let is_within = |start| (module.start..module.end).contains(&start);
            let starts = accessed.iter().map(|&at| (self.variables[at].start, at));
            // By address in the file.
            let of_module: HashMap<u64, usize> = starts
                .filter(|&(start, _)| is_within(start))
                .map(|(start, at)| (start.wrapping_sub(module.bias), at))
                .collect();
            let wanted: HashSet<u64> = of_module.keys().copied().collect();
            if !wanted.is_empty()
                && let Some(path) = self.known.symbols.debug_file(&path_of(module))
            {
                for (address, type_id) in types.of_variables(path, &wanted) {
                    self.variables[of_module[&address]].type_id = Some(type_id);
                }
            }
        }
    }

    /// Takes note of an event: allocations get names, freed memory keeps its own.
    pub fn note(&mut self, event: &Event) {
        let freed = match event.kind {
            wire::FREE | wire::MUNMAP => event.address,
            wire::REALLOC | wire::MREMAP => event.from,
            _ => 0,
        };
        if freed != 0
            && let Some(chunk) = self.chunks.get_mut(&freed)
        {
            let is_map = event.kind == wire::MUNMAP || event.kind == wire::MREMAP;
            chunk.prefix = if is_map { "unmap:" } else { "freed:" };
        }
        let Some(prefix) = prefix(event.kind) else {
            return;
        };
        let (number, start) = (self.allocations, event.address);
        self.allocations += 1;
        if start == 0 {
            return;
        }
        // What lay there is gone.
        let end = start.saturating_add(event.len.max(1));
        let old: Vec<u64> = { self.chunks.range(..end).rev() }
            .take_while(|(_, chunk)| chunk.start + chunk.len.max(1) > start)
            .map(|(&at, _)| at)
            .collect();
        for at in old {
            self.chunks.remove(&at);
        }
        let site = self.site_of.get(&stack_of(event)).copied().unwrap_or(0);
        self.chunks.insert(
            start,
            Chunk {
                number,
                prefix,
                start,
                len: event.len,
                site,
            },
        );
    }

    /// The function of an instruction with the offset in it, as `main+17`.
    pub fn function(&mut self, ip: u64) -> String {
        self.instruction(ip).0.clone()
    }

    /// The function of an instruction with the offset in it, and its `file:line`.
    pub fn instruction(&mut self, ip: u64) -> &(String, String) {
        let Names {
            lines,
            functions,
            maps,
            known,
            loaded,
            ..
        } = self;
        lines.entry(ip).or_insert_with(|| {
            let name = match symbol_at(functions, ip) {
                Some(at) => {
                    let symbol = &functions[at];
                    let name = short_function(without_parameters(&symbol.name));
                    format!("{name}+{}", ip - symbol.start)
                }
                // As the file counts, for `addr2line` and the like.
                None => match maps
                    .modules
                    .iter()
                    .find(|it| (it.start..it.end).contains(&ip))
                {
                    Some(module) => {
                        let path = path_of(module);
                        let name = path.file_name().unwrap_or_default().to_string_lossy();
                        format!("{name}+{:#x}", ip.wrapping_sub(module.bias))
                    }
                    None => format!("{ip:#x}"),
                },
            };
            // The lines are of calls, which are looked for before the address.
            let frames = known.symbols.frames(ip.wrapping_add(1), loaded);
            (name, frames.first().map(line_of).unwrap_or_default())
        })
    }

    /// What an address belongs to.
    #[must_use]
    pub fn place(&self, address: u64) -> Place {
        let place = |name: String, start| Place {
            name,
            offset: address.wrapping_sub(start),
            chunk: None,
            site: None,
            type_id: None,
        };
        if let Some((_, chunk)) = self.chunks.range(..=address).next_back()
            && address - chunk.start < chunk.len.max(1)
        {
            return Place {
                chunk: Some(chunk.number),
                site: Some(chunk.site),
                type_id: self.sites.get(chunk.site).map(|site| site.type_id),
                ..place(self.chunk_name(chunk), chunk.start)
            };
        }
        if let Some(at) = symbol_at(&self.variables, address) {
            let symbol = &self.variables[at];
            return Place {
                type_id: symbol.type_id,
                ..place(symbol.name.to_string(), symbol.start)
            };
        }
        match self.maps.row(address) {
            Some(row) => place(self.region(address), row.start),
            None => place(String::new(), 0),
        }
    }

    /// The chunk's forged name: `<malloc0014@func1+230>`.
    fn chunk_name(&self, chunk: &Chunk) -> String {
        let site = self.sites.get(chunk.site).map_or("", |site| &site.name);
        format!("<{}{:04}@{site}>", chunk.prefix, chunk.number)
    }

    /// The mappings of the process before they were taken over, by address.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.maps.rows
    }

    /// The kind of memory that an address is in: `[heap]`, or a file's name.
    #[must_use]
    pub fn region(&self, address: u64) -> String {
        match self.maps.row(address) {
            Some(row) if !row.name.is_empty() => short(&row.name).to_owned(),
            // The heap has grown, or it is mapped memory.
            _ if self.is_heap(address) => "[heap]".to_owned(),
            _ => "[mapped]".to_owned(),
        }
    }

    /// Whether an address is where `brk` makes the heap: above the executable, which comes first.
    fn is_heap(&self, address: u64) -> bool {
        const ROOM: u64 = 1 << 30;
        let own = self.maps.modules.first().map_or(0, |module| module.end);
        (own..own.saturating_add(ROOM)).contains(&address)
    }

    /// The field of the chunk's or variable's type.
    #[must_use]
    pub fn field(&self, place: &Place) -> Option<&str> {
        let (index, offset) = (place.type_id? as usize, place.offset);
        let kind = self.types.get(index)?;
        if let Some(tail) = self.tails.get(&index)
            && kind.size.is_some_and(|size| offset >= size)
        {
            return Some(tail);
        }
        let within = offset % kind.size.filter(|&size| size > 0)?;
        let field = { kind.fields.iter() }
            .find(|field| (field.offset..field.offset + field.size).contains(&within))?;
        Some(&field.name)
    }

    /// What the chunk or variable holds, if that is known.
    #[must_use]
    pub fn type_name(&self, place: &Place) -> Option<&str> {
        let kind = self.types.get(place.type_id? as usize)?;
        (kind.name != "bytes").then_some(&kind.name)
    }
}

/// Callers by which allocation points are told apart.
fn stack_of(event: &Event) -> Vec<u64> {
    [event.ip]
        .into_iter()
        .chain(event.callers.iter().copied())
        .collect()
}

/// The first six letters of a chunk's name, by the event that makes it.
fn prefix(kind: u8) -> Option<&'static str> {
    Some(match kind {
        wire::MALLOC => "malloc",
        wire::CALLOC => "calloc",
        wire::REALLOC => "reallo",
        wire::MMAP => "memmap",
        wire::MREMAP => "mremap",
        _ => return None,
    })
}

/// The functions and variables of a file.
fn tables(path: &Path) -> [Vec<Symbol>; 2] {
    let mut tables = [Vec::new(), Vec::new()];
    if let Ok(bytes) = fs::read(path)
        && let Ok(file) = object::File::parse(&*bytes)
    {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let list = match symbol.kind() {
                SymbolKind::Text => &mut tables[0],
                SymbolKind::Data => &mut tables[1],
                _ => continue,
            };
            let start = symbol.address();
            if start != 0
                && let Ok(name) = symbol.name()
            {
                list.push(Symbol {
                    start,
                    end: start.saturating_add(symbol.size().max(1)),
                    name: demangle(name).into(),
                    type_id: None,
                });
            }
        }
    }
    tables
}

/// The index of the symbol that an address is in.
fn symbol_at(list: &[Symbol], address: u64) -> Option<usize> {
    let at = list.partition_point(|symbol| symbol.start <= address);
    at.checked_sub(1).filter(|&at| address < list[at].end)
}

fn line_of(frame: &Frame) -> String {
    if frame.file.is_empty() {
        String::new()
    } else {
        format!("{}:{}", frame.file, frame.line)
    }
}

/// The last part of a path.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function of C++ without the types of its parameters.
pub(crate) fn without_parameters(name: &str) -> &str {
    const NOT: [&str; 2] = ["(anonymous namespace)", "()("];
    let mut depth = 0;
    for (at, char) in name.char_indices() {
        match char {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 && at > 0 => {
                let is_name = NOT.iter().any(|it| name[at..].starts_with(it));
                if !is_name && !name[..at].ends_with([' ', ':', '{']) {
                    return &name[..at];
                }
            }
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, address: u64, len: u64, from: u64) -> Event {
        Event {
            kind,
            ip: 0x10,
            address,
            len,
            from,
            ..Event::default()
        }
    }

    #[test]
    fn parameters_of_functions_are_cut() {
        let cases = [
            ("ns::insert(ns::node*, ns::list&)", "ns::insert"),
            (
                "ns::less::operator()(ns::node const&)",
                "ns::less::operator()",
            ),
            (
                "(anonymous namespace)::sum(int)",
                "(anonymous namespace)::sum",
            ),
            (
                "demo::map::<u32, fn(u8) -> u8>",
                "demo::map::<u32, fn(u8) -> u8>",
            ),
        ];
        for (name, text) in cases {
            assert_eq!(without_parameters(name), text);
        }
    }

    #[test]
    fn chunks_are_numbered_and_keep_their_name_when_freed() {
        let events = [
            event(wire::MALLOC, 1000, 16, 0),
            event(wire::CALLOC, 2000, 16, 0),
            event(wire::FREE, 1000, 0, 0),
            event(wire::REALLOC, 3000, 32, 2000),
            event(wire::MMAP, 0x8000, 4096, 0),
            event(wire::MUNMAP, 0x8000, 4096, 0),
        ];
        let mut names = Names::new(Maps::default(), events.iter().cloned(), Known::default());
        for event in &events {
            names.note(event);
        }
        let name = |address| names.place(address).name;
        assert_eq!(name(1008), "<freed:0000@0x10>");
        assert_eq!(name(2015), "<freed:0001@0x10>");
        assert_eq!(
            (name(3031), names.place(3031).offset),
            ("<reallo0002@0x10>".to_owned(), 31)
        );
        assert_eq!(name(0x8000), "<unmap:0003@0x10>");
        assert_eq!(name(1016), "");
        // Whoever gets the memory next gives it its name.
        names.note(&event(wire::MALLOC, 992, 24, 0));
        assert_eq!(names.place(1008).name, "<malloc0004@0x10>");
        assert_eq!(names.place(1016).name, "");
    }

    #[test]
    fn own_functions_and_variables_have_names() {
        let own = std::env::current_exe().unwrap();
        let file = tempfile::TempDir::new().unwrap();
        // Where the same file lies elsewhere, it is not read again.
        let (mut known, mut text) = (Known::default(), String::new());
        for (process, start) in [(7, 0x5000_0000_u64), (8, 0x6000_0000)] {
            let (code, own) = (start + 0x1000, own.display());
            text += &format!(
                "/x/{process}.0\n{start:x}-{code:x} r--p 00000000 08:01 5 {own}\n\
                 {code:x}-{:x} r-xp 00001000 08:01 5 {own}\n",
                code + 0x1000
            );
            fs::write(file.path().join("maps"), &text).unwrap();
            let maps = Maps::of(&file.path().join(format!("{process}.0.events")));
            let mut names = Names::new(maps, std::iter::empty(), known);
            let mut own = names.functions.iter();
            let main = own.find(|it| &*it.name == "main").unwrap().start;
            assert!(main > start);
            assert_eq!(names.function(main + 3), "main+3");
            known = names.known;
        }
        assert_eq!(known.tables.len(), 1);
    }
}
