//! The last stack of a thread, of which the frames that are still there need not be found again.
//!
//! Stacks of consecutive allocations differ in their innermost frames. A frame is left as the last
//! time if its registers and the words that are read to leave it are what they were: then so are
//! the registers of its caller. To compare these takes a fraction of a step by unwind information.
//!
//! A `PathCursor` follows a walk, from the innermost frame on. Once a frame is one of the last walk
//! (the two have *met*), so are all frames further out; those before are new.

use super::Frame;
use super::dependences::{self, WalkDependences};
use super::memory::Reader;
use super::modules;

/// Frames of the longest stack that is kept.
const ROOM: usize = 320;

/// Zeros are an empty one.
#[repr(C)]
pub(super) struct LastWalk {
    generation: u32,
    len: u32,
    /// The outermost first.
    steps: [Step; ROOM],
    /// Frames of the walk under way that were not met, the innermost first.
    new: [Step; ROOM],
}

/// A frame, and what leads to its caller.
#[derive(Clone, Copy)]
#[repr(C)]
struct Step {
    frame: Frame,
    /// Where the return address lies that is the caller's `ip`; 0 if the way is another.
    ip_at: u64,
    /// Where the caller's `bp` lies; 0 if it is the same.
    bp_at: u64,
    /// Hash of the addresses from the outermost frame to this one.
    hash: u64,
    /// How many these are.
    depth: u32,
    by_bp: bool,
    is_own: bool,
}

/// What a walk has in common with the ones before.
#[derive(Clone, Copy, Default, Debug)]
pub struct SharedFrames {
    /// The hash of the addresses, or 0 if it is not known.
    pub hash: u64,
    /// So many of the outermost frames are those of the last walk, too.
    pub frames: usize,
}

/// Addresses are added from the outermost to the innermost.
pub const EMPTY: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a stack with one more frame.
#[inline(always)]
pub fn add_to_hash(hash: u64, pc: u64) -> u64 {
    let hash = (hash ^ pc).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash ^ hash >> 29
}

/// See the [module](self).
pub(super) struct PathCursor<'m> {
    /// `None` if the walk cannot be kept.
    path: Option<&'m mut LastWalk>,
    /// Steps of the path that may still be met.
    left: usize,
    /// The innermost step that was met, and the one that the walk is at.
    met: Option<(usize, usize)>,
    new: usize,
}

impl<'m> PathCursor<'m> {
    pub(super) fn new(mut path: Option<&'m mut LastWalk>) -> Self {
        let mut left = 0;
        if let Some(path) = &mut path {
            let generation = dependences::generation();
            if path.generation != generation {
                (path.generation, path.len) = (generation, 0);
            }
            left = path.len as usize;
        }
        PathCursor {
            path,
            left,
            met: None,
            new: 0,
        }
    }

    /// Takes the steps of which all is as the last time, while the walk is in frames that it has
    /// met and `each` takes their addresses. Returns the frame that it has come to.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        reader: &Reader,
        trail: &mut WalkDependences<'_>,
        mut each: impl FnMut(u64) -> bool,
    ) -> Option<Frame> {
        let (_, at) = self.met.as_mut()?;
        let steps = self.path.as_ref()?.steps.get(..=*at)?;
        let (mut step, outer) = steps.split_last()?;
        for next in outer.iter().rev() {
            let (ip_at, bp_at, caller) = (step.ip_at, step.bp_at, &next.frame);
            if ip_at == 0
                || reader.word_of_window(ip_at) != Some(caller.ip)
                || bp_at != 0 && reader.word_of_window(bp_at) != Some(caller.bp)
            {
                break;
            }
            trail.step(step.frame.bp, step.by_bp, [ip_at, caller.ip], bp_at);
            step = next;
            *at -= 1;
            if !next.is_own && !each(caller.ip) {
                break;
            }
        }
        Some(step.frame)
    }

    /// The frame that the walk is at is left by the words at these places, and by `bp` or not.
    #[inline(always)]
    pub(super) fn leaves(&mut self, ip_at: u64, bp_at: u64, by_bp: bool) {
        let Some(path) = &mut self.path else { return };
        let step = match self.met {
            Some((_, at)) => path.steps.get_mut(at),
            None => path.new[..self.new].last_mut(),
        };
        if let Some(step) = step {
            (step.ip_at, step.bp_at, step.by_bp) = (ip_at, bp_at, by_bp);
        }
    }

    /// The walk has come to a frame by unwind information.
    #[inline(always)]
    pub(super) fn arrives(&mut self, frame: Frame, is_own: bool) {
        let Some(path) = &mut self.path else { return };
        if let Some((first, at)) = self.met {
            if at > 0 && path.steps[at - 1].frame == frame {
                self.met = Some((first, at - 1));
                return;
            }
            self.part();
        }
        let Some(path) = &mut self.path else { return };
        while let Some(last) = path.steps[..self.left].last()
            && last.frame.sp < frame.sp
        {
            self.left -= 1;
        }
        if let Some(last) = path.steps[..self.left].last()
            && last.frame == frame
        {
            self.met = Some((self.left - 1, self.left - 1));
            return;
        }
        let Some(step) = path.new.get_mut(self.new) else {
            return self.give_up();
        };
        *step = Step {
            frame,
            ip_at: 0,
            bp_at: 0,
            hash: 0,
            depth: 0,
            by_bp: false,
            is_own,
        };
        self.new += 1;
    }

    /// The walk goes on otherwise than the path: what it has met is new.
    #[cold]
    fn part(&mut self) {
        if let (Some(path), Some((first, at))) = (&mut self.path, self.met.take()) {
            let met = path.steps[at..=first].iter().rev();
            let mut new = path.new[self.new..].iter_mut();
            met.zip(&mut new).for_each(|(step, new)| *new = *step);
            self.left = at;
            self.new += first + 1 - at;
            if self.new > ROOM {
                self.give_up();
            }
        }
    }

    /// The walk does not follow from unwind information and the words of the stack alone.
    #[cold]
    pub(super) fn give_up(&mut self) {
        if let Some(path) = self.path.take() {
            path.len = 0;
        }
    }

    /// Keeps the walk for the next one. Nothing is known of it if some of the outermost frames were
    /// left out.
    pub(super) fn end(mut self, is_cut: bool) -> SharedFrames {
        if !is_cut && self.met.is_some_and(|(_, at)| at > 0) {
            self.part();
        }
        let Some(path) = self.path else {
            return SharedFrames::default();
        };
        let kept = self.met.map_or(0, |(first, _)| first + 1);
        let len = kept + self.new;
        if len > ROOM {
            path.len = 0;
            return SharedFrames::default();
        }
        path.len = len as u32;
        let (mut hash, mut depth) = match kept.checked_sub(1) {
            Some(last) => (path.steps[last].hash, path.steps[last].depth),
            None => (EMPTY, 0),
        };
        let frames = depth as usize;
        let new = path.new[..self.new].iter().rev();
        for (step, new) in path.steps[kept..len].iter_mut().zip(new) {
            if !new.is_own {
                hash = add_to_hash(hash, new.frame.ip);
                depth += 1;
            }
            *step = Step {
                hash,
                depth,
                ..*new
            };
        }
        if is_cut || modules::in_turn() {
            return SharedFrames::default();
        }
        SharedFrames {
            hash: hash | 1,
            frames,
        }
    }
}
