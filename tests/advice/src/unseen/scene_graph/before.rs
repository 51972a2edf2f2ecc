//! A game's scene: nodes in an arena with generations, moved by their parents in each frame.

use fastrand::Rng;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) index: u32,
    generation: u32,
}

/// A rotation and a translation.
pub(super) type Transform = [f32; 6];

pub(super) struct Node {
    name: String,
    pub(super) local: Transform,
    pub(super) world: Transform,
    pub(super) children: Vec<Handle>,
    pub(super) parent: Option<Handle>,
}

pub(super) struct Slot {
    generation: u32,
    pub(super) node: Option<Node>,
}

/// The root is the first that is added.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) slots: Vec<Slot>,
    pub(super) root: Handle,
    pub(super) free: Vec<u32>,
}

pub(super) fn multiply(a: &Transform, b: &Transform) -> Transform {
    let x = |row: usize| a[row] * b[0] + a[row + 3] * b[1];
    let y = |row: usize| a[row] * b[3] + a[row + 3] * b[4];
    let [left, up] = [0, 1].map(|row| a[row] * b[2] + a[row + 3] * b[5]);
    [x(0), x(1), a[2] + left, y(0), y(1), a[5] + up]
}

impl Scene {
    fn add(&mut self, node: Node) -> Handle {
        let parent = node.parent;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                node: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.node = Some(node);
        let generation = slot.generation;
        let handle = Handle { index, generation };
        if let Some(parent) = parent {
            self.get(parent).unwrap().children.push(handle);
        }
        handle
    }

    fn get(&mut self, handle: Handle) -> Option<&mut Node> {
        let slot = &mut self.slots[handle.index as usize];
        slot.node
            .as_mut()
            .filter(|_| slot.generation == handle.generation)
    }

    fn remove(&mut self, handle: Handle) {
        if self.get(handle).is_none() {
            return;
        }
        let slot = &mut self.slots[handle.index as usize];
        let Some(node) = slot.node.take() else { return };
        slot.generation += 1;
        self.free.push(handle.index);
        node.children.into_iter().for_each(|it| self.remove(it));
        if let Some(parent) = node.parent.and_then(|it| self.get(it)) {
            parent.children.retain(|it| *it != handle);
        }
    }

    pub(super) fn names(&self) -> u64 {
        let nodes = self.slots.iter().filter_map(|slot| slot.node.as_ref());
        nodes.map(|node| node.name.len() as u64).sum()
    }

    fn update(&mut self, handle: Handle, above: &Transform, sum: &mut f32) {
        let Some(node) = self.get(handle) else { return };
        node.world = multiply(above, &node.local);
        *sum += node.world[2] + node.world[5];
        let (world, children) = (node.world, node.children.clone());
        children.iter().for_each(|it| self.update(*it, &world, sum));
    }
}

/// Things come and go while the level is loaded.
pub(super) fn scene(size: usize) -> Scene {
    let mut random = Rng::with_seed(107);
    let mut scene = Scene::default();
    let mut handles = Vec::new();
    while handles.len() < 2 * size {
        let parent = random.choice(&handles).copied();
        let parent = parent
            .filter(|it| scene.get(*it).is_some())
            .or(handles.first().copied());
        let turn = random.f32();
        let (x, y) = (random.f32() - 0.5, random.f32() - 0.5);
        handles.push(scene.add(Node {
            name: format!("node {}", handles.len()),
            local: [turn.cos(), turn.sin(), x, -turn.sin(), turn.cos(), y],
            world: [0.0; 6],
            children: Vec::new(),
            parent,
        }));
        if handles.len().is_multiple_of(4) {
            scene.remove(handles[random.usize(handles.len() / 2..handles.len())]);
        }
    }
    scene
}

pub(super) fn frames(mut frame: impl FnMut(Transform) -> f32) -> u64 {
    (0..30).fold(0, |sum: u64, number| {
        let moved = frame([1.0, 0.0, number as f32, 0.0, 1.0, 0.5]);
        sum.rotate_left(7) ^ u64::from(moved.to_bits())
    })
}

pub(super) fn play(mut scene: Scene) -> u64 {
    let sum = frames(|camera| {
        let mut sum = 0.0;
        scene.update(scene.root, &camera, &mut sum);
        sum
    });
    sum ^ scene.names()
}

pub fn run(size: usize) -> u64 {
    play(scene(size))
}
