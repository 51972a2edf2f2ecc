//! The heap of an interpreter, with a collector that marks and sweeps.

use fastrand::Rng;

pub(super) enum Object {
    Free(Option<usize>),
    Number(f64),
    Pair(usize, usize),
    Text(String),
}

struct Cell {
    is_marked: bool,
    object: Object,
}

struct Heap {
    cells: Vec<Cell>,
    free: Option<usize>,
}

/// What a program needs of its heap.
pub(super) trait Memory {
    /// The first free cell, which is then no longer free.
    fn take(&mut self) -> Option<usize>;
    fn object(&mut self, cell: usize) -> &mut Object;
    /// Frees what cannot be reached; returns the number of live objects.
    fn collect(&mut self, roots: &[usize]) -> u64;
}

impl Memory for Heap {
    fn take(&mut self) -> Option<usize> {
        let cell = self.free?;
        if let Object::Free(next) = self.cells[cell].object {
            self.free = next;
        }
        Some(cell)
    }

    fn object(&mut self, cell: usize) -> &mut Object {
        &mut self.cells[cell].object
    }

    fn collect(&mut self, roots: &[usize]) -> u64 {
        let (mut to_do, mut live) = (roots.to_vec(), 0);
        while let Some(cell) = to_do.pop() {
            let cell = &mut self.cells[cell];
            if !std::mem::replace(&mut cell.is_marked, true) {
                live += 1;
                if let Object::Pair(first, rest) = cell.object {
                    to_do.extend([first, rest]);
                }
            }
        }
        self.free = None;
        for (at, cell) in self.cells.iter_mut().enumerate() {
            if !std::mem::take(&mut cell.is_marked) {
                cell.object = Object::Free(self.free.replace(at));
            }
        }
        live
    }
}

pub(super) const CELLS: usize = 16 << 10;
const VARIABLES: usize = CELLS / 16;

/// A program with many lists, which grow, are shared, and are begun again.
pub(super) fn program(size: usize, heap: &mut impl Memory) -> u64 {
    let mut random = Rng::with_seed(112);
    let (mut sum, mut roots) = (heap.collect(&[]), Vec::new());
    for step in 0..4 * size {
        let mut new = |object, roots: &mut Vec<usize>| {
            let cell = heap.take().unwrap_or_else(|| {
                sum = sum.rotate_left(9) ^ heap.collect(roots);
                heap.take().expect("free cells")
            });
            *heap.object(cell) = object;
            roots.push(cell);
        };
        match random.u8(..8) {
            0 => new(Object::Text(format!("step {step}")), &mut roots),
            _ => new(Object::Number(step as f64), &mut roots),
        }
        let variable = random.usize(..VARIABLES);
        if random.u8(..6) > 0 && variable + 1 < roots.len() {
            new(
                Object::Pair(roots[roots.len() - 1], roots[variable]),
                &mut roots,
            );
        }
        let value = roots[roots.len() - 1];
        roots.truncate(VARIABLES);
        if variable < roots.len() {
            roots[variable] = value;
        }
    }
    let texts = |sum, &root: &usize| match heap.object(root) {
        Object::Pair(..) => sum + 1,
        Object::Text(text) => sum + text.len() as u64,
        Object::Number(number) => sum + *number as u64,
        Object::Free(_) => sum,
    };
    sum ^ roots.iter().fold(0, texts)
}

pub fn run(size: usize) -> u64 {
    let cell = |_| Cell {
        is_marked: false,
        object: Object::Free(None),
    };
    let cells = (0..CELLS).map(cell).collect();
    program(size, &mut Heap { cells, free: None })
}
