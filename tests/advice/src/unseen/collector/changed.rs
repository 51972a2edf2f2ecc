//! Marks beside the cells, a bit for each.

use super::before::{CELLS, Memory, Object, program};

struct Heap {
    objects: Vec<Object>,
    marks: Vec<u64>,
    free: Option<usize>,
}

impl Memory for Heap {
    fn take(&mut self) -> Option<usize> {
        let cell = self.free?;
        if let Object::Free(next) = self.objects[cell] {
            self.free = next;
        }
        Some(cell)
    }

    fn object(&mut self, cell: usize) -> &mut Object {
        &mut self.objects[cell]
    }

    fn collect(&mut self, roots: &[usize]) -> u64 {
        let (mut to_do, mut live) = (roots.to_vec(), 0);
        while let Some(cell) = to_do.pop() {
            let (word, bit) = (&mut self.marks[cell / 64], 1 << (cell % 64));
            if *word & bit == 0 {
                *word |= bit;
                live += 1;
                if let Object::Pair(first, rest) = self.objects[cell] {
                    to_do.extend([first, rest]);
                }
            }
        }
        self.free = None;
        for (at, object) in self.objects.iter_mut().enumerate() {
            if self.marks[at / 64] >> (at % 64) & 1 == 0 {
                *object = Object::Free(self.free.replace(at));
            }
        }
        self.marks.fill(0);
        live
    }
}

pub fn idea(size: usize) -> u64 {
    let objects: Vec<Object> = (0..CELLS).map(|_| Object::Free(None)).collect();
    let marks = vec![0; objects.len().div_ceil(64)];
    program(
        size,
        &mut Heap {
            objects,
            marks,
            free: None,
        },
    )
}
