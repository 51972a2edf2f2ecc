//! Ordered maps of names.

use super::before::{Event, Symbol, compile};
use ctree::CTreeMap;

pub fn container(size: usize) -> u64 {
    let mut scopes: Vec<CTreeMap<String, Symbol>> = Vec::new();
    compile(size, |event| {
        match event {
            Event::Open => scopes.push(CTreeMap::new()),
            Event::Close => drop(scopes.pop()),
            Event::Declare(name, symbol) => {
                let scope = scopes.last_mut().expect("a scope is open");
                scope.insert(name.to_owned(), symbol);
            }
            Event::Use(name) => {
                let mut inner_first = scopes.iter_mut().rev();
                let symbol = inner_first.find_map(|scope| scope.get_mut(name));
                return symbol.map_or(7, Symbol::used);
            }
        }
        0
    })
}
