//! A compiler's table of symbols: a map of names for each scope that is open.

use fastrand::Rng;
use std::collections::HashMap;

#[derive(Clone, Copy)]
pub(super) struct Symbol {
    slot: u32,
    uses: u32,
}

#[derive(Default)]
struct Table {
    scopes: Vec<HashMap<String, Symbol>>,
}

impl Table {
    fn declare(&mut self, name: &str, symbol: Symbol) {
        let scope = self.scopes.last_mut().expect("a scope is open");
        scope.insert(name.to_owned(), symbol);
    }

    fn find(&mut self, name: &str) -> Option<&mut Symbol> {
        let mut inner_first = self.scopes.iter_mut().rev();
        inner_first.find_map(|scope| scope.get_mut(name))
    }
}

/// What a parser meets.
pub(super) enum Event<'t> {
    Open,
    Close,
    Declare(&'t str, Symbol),
    Use(&'t str),
}

pub(super) fn compile(size: usize, mut each: impl FnMut(Event<'_>) -> u32) -> u64 {
    let mut random = Rng::with_seed(71);
    let names: Vec<String> = (0..500)
        .map(|number| format!("variable_{number}"))
        .collect();
    each(Event::Open);
    let (mut depth, mut sum) = (1, 0_u64);
    for slot in 0..size as u32 {
        let name = &names[random.usize(..500).min(random.usize(..500))];
        let event = match random.u8(..16) {
            0 if depth < 12 => Event::Open,
            1 if depth > 1 => Event::Close,
            2..5 => Event::Declare(name, Symbol { slot, uses: 0 }),
            _ => Event::Use(name),
        };
        match event {
            Event::Open => depth += 1,
            Event::Close => depth -= 1,
            _ => {}
        }
        sum = sum.rotate_left(1) ^ u64::from(each(event));
    }
    sum
}

impl Symbol {
    pub(super) fn used(&mut self) -> u32 {
        self.uses += 1;
        self.slot ^ self.uses
    }
}

pub fn run(size: usize) -> u64 {
    let mut table = Table::default();
    compile(size, |event| {
        match event {
            Event::Open => table.scopes.push(HashMap::new()),
            Event::Close => drop(table.scopes.pop()),
            Event::Declare(name, symbol) => table.declare(name, symbol),
            Event::Use(name) => return table.find(name).map_or(7, Symbol::used),
        }
        0
    })
}
