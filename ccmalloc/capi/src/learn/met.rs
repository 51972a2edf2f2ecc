//! Which site the objects come from that were looked at lately.

/// How many objects are kept.
const OBJECTS: usize = 8192;

/// A call site without its caller: the return address and the bytes asked for.
pub(super) type Origin = (usize, usize);

/// By the hash of their address, the latest object of each.
pub(super) struct Met([(usize, Origin); OBJECTS]);

impl Met {
    pub(super) const fn new() -> Self {
        Self([(0, (0, 0)); OBJECTS])
    }

    pub(super) fn clear(&mut self) {
        self.0.fill((0, (0, 0)));
    }

    pub(super) fn insert(&mut self, object: usize, origin: Origin) {
        if let Some(place) = self.0.get_mut(hash(object)) {
            *place = (object, origin);
        }
    }

    pub(super) fn get(&self, object: usize) -> Option<Origin> {
        let &(known, origin) = self.0.get(hash(object))?;
        (known == object).then_some(origin)
    }
}

fn hash(object: usize) -> usize {
    object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (OBJECTS - 1)
}
