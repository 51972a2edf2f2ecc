//! A drawing with its history: edits are kept in boxes, undone and done again.

use fastrand::Rng;

pub(super) enum Edit {
    Move { shape: usize, by: (i32, i32) },
    Rename { shape: usize, name: String },
    Group(Vec<Edit>),
}

#[derive(Default)]
pub(super) struct Drawing {
    places: Vec<(i32, i32)>,
    names: Vec<String>,
    done: Vec<Box<Edit>>,
    undone: Vec<Box<Edit>>,
}

impl Drawing {
    /// Makes an edit, and the edit the one that takes it back.
    fn apply(&mut self, edit: &mut Edit) {
        match edit {
            Edit::Move { shape, by } => {
                let place = &mut self.places[*shape];
                *place = (place.0 + by.0, place.1 + by.1);
                *by = (-by.0, -by.1);
            }
            Edit::Rename { shape, name } => std::mem::swap(&mut self.names[*shape], name),
            Edit::Group(edits) => {
                edits.iter_mut().for_each(|edit| self.apply(edit));
                edits.reverse();
            }
        }
    }

    fn make(&mut self, mut edit: Box<Edit>) {
        self.apply(&mut edit);
        self.done.push(edit);
        self.undone.clear();
        if self.done.len() > 2000 {
            self.done.drain(..1000);
        }
    }

    fn undo(&mut self) {
        if let Some(mut edit) = self.done.pop() {
            self.apply(&mut edit);
            self.undone.push(edit);
        }
    }

    fn redo(&mut self) {
        if let Some(mut edit) = self.undone.pop() {
            self.apply(&mut edit);
            self.done.push(edit);
        }
    }
}

fn edit(random: &mut Rng, shapes: usize) -> Edit {
    let shape = random.usize(..shapes);
    match random.u8(..8) {
        0 => Edit::Group((0..4).map(|_| edit(random, shapes)).collect()),
        1..3 => Edit::Rename {
            shape,
            name: format!("shape {}", random.u16(..)),
        },
        _ => Edit::Move {
            shape,
            by: (random.i32(-9..9), random.i32(-9..9)),
        },
    }
}

pub(super) fn draw(size: usize, new: impl Fn(Edit) -> Box<Edit>) -> u64 {
    const SHAPES: usize = 3000;
    let mut random = Rng::with_seed(72);
    let mut drawing = Drawing {
        places: vec![(0, 0); SHAPES],
        names: vec![String::new(); SHAPES],
        ..Drawing::default()
    };
    for _ in 0..size {
        match random.u8(..8) {
            0..2 => drawing.undo(),
            2..4 => drawing.redo(),
            _ => drawing.make(new(edit(&mut random, SHAPES))),
        }
    }
    let shapes = drawing.places.iter().zip(&drawing.names);
    shapes.fold(0, |sum: u64, (place, name)| {
        sum.rotate_left(3) ^ (place.0 as u64) ^ (place.1 as u64) << 20 ^ name.len() as u64
    })
}

pub fn run(size: usize) -> u64 {
    draw(size, Box::new)
}
