//! A tree of directories as a list of paths describes it, of which sums and searches are made.

use fastrand::Rng;

pub(super) struct Entry {
    name: String,
    pub(super) modified: u64,
    pub(super) bytes: u64,
    pub(super) entries: Vec<Entry>,
}

impl Entry {
    fn new(name: String) -> Self {
        Entry {
            name,
            modified: 0,
            bytes: 0,
            entries: Vec::new(),
        }
    }

    fn entry(&mut self, name: &str) -> &mut Entry {
        let known = self.entries.iter().position(|entry| entry.name == name);
        let place = known.unwrap_or_else(|| {
            self.entries.push(Entry::new(name.to_owned()));
            self.entries.len() - 1
        });
        &mut self.entries[place]
    }

    /// The bytes of all files in it.
    fn usage(&self) -> u64 {
        self.bytes + self.entries.iter().map(Entry::usage).sum::<u64>()
    }

    /// How many are newer.
    fn newer(&self, than: u64) -> u64 {
        let within: u64 = self.entries.iter().map(|entry| entry.newer(than)).sum();
        within + u64::from(self.modified > than)
    }
}

pub(super) fn read(size: usize) -> Entry {
    let mut random = Rng::with_seed(42);
    let mut root = Entry::new(String::new());
    for number in 0..size {
        let mut entry = &mut root;
        for _ in 0..6 {
            entry = entry.entry(&format!("d{}", random.u32(..8)));
        }
        entry = entry.entry(&format!("file{number}"));
        entry.bytes = random.u64(..1 << 20);
        entry.modified = random.u64(..1 << 30);
    }
    root
}

pub(super) fn report(root: &Entry) -> u64 {
    (1..=12).fold(0, |sum, round| {
        let newer = root.newer(round << 25);
        sum ^ root.usage().wrapping_mul(round) ^ newer.rotate_left(round as u32)
    })
}

pub fn run(size: usize) -> u64 {
    report(&read(size))
}
