//! A cache of pages that drops the least recently used: a map, and a list through the slots.

use fastrand::Rng;
use std::collections::HashMap;

const NONE: usize = usize::MAX;

pub(super) type Page = [u8; 240];

struct Slot<V> {
    key: u64,
    value: V,
    newer: usize,
    older: usize,
}

struct Cache<V> {
    slots: Vec<Slot<V>>,
    places: HashMap<u64, usize>,
    newest: usize,
    oldest: usize,
    capacity: usize,
}

impl<V> Cache<V> {
    fn new(capacity: usize) -> Self {
        Cache {
            slots: Vec::new(),
            places: HashMap::new(),
            newest: NONE,
            oldest: NONE,
            capacity,
        }
    }

    fn get(&mut self, key: u64) -> Option<&V> {
        let place = *self.places.get(&key)?;
        self.unlink(place);
        self.link_newest(place);
        Some(&self.slots[place].value)
    }

    fn put(&mut self, key: u64, value: V) {
        let (newer, older) = (NONE, NONE);
        let slot = Slot {
            key,
            value,
            newer,
            older,
        };
        let place = if self.slots.len() < self.capacity {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let place = self.oldest;
            self.unlink(place);
            self.places.remove(&self.slots[place].key);
            self.slots[place] = slot;
            place
        };
        self.places.insert(key, place);
        self.link_newest(place);
    }

    fn unlink(&mut self, place: usize) {
        let Slot { newer, older, .. } = self.slots[place];
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older].newer = newer,
        }
    }

    fn link_newest(&mut self, place: usize) {
        self.slots[place].newer = NONE;
        self.slots[place].older = self.newest;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.slots[newest].newer = place,
        }
        self.newest = place;
    }
}

pub fn run(size: usize) -> u64 {
    serve(size, |page| page, |page| page[7])
}

/// Requests, some pages more often than others.
pub(super) fn serve<V>(size: usize, new: fn(Page) -> V, byte: fn(&V) -> u8) -> u64 {
    let mut random = Rng::with_seed(41);
    let mut cache = Cache::new(size / 2);
    let mut sum = 0_u64;
    for _ in 0..6 * size {
        let key = random.u64(..size as u64).min(random.u64(..size as u64));
        match cache.get(key) {
            Some(value) => sum += u64::from(byte(value)),
            None => cache.put(key, new([key as u8; 240])),
        }
    }
    sum
}
