//! Messages that arrive as packets in any order, put together again.

use fastrand::Rng;
use std::collections::{BTreeMap, HashMap};

pub(super) struct Packet {
    message: u64,
    part: u8,
    parts: u8,
    bytes: Box<[u8]>,
}

#[derive(Default)]
struct Receiver {
    pending: HashMap<u64, BTreeMap<u8, Box<[u8]>>>,
}

impl Receiver {
    /// The message that is complete with a packet.
    fn receive(&mut self, packet: Packet) -> Option<Vec<u8>> {
        let parts = self.pending.entry(packet.message).or_default();
        parts.insert(packet.part, packet.bytes);
        if parts.len() < usize::from(packet.parts) {
            return None;
        }
        let parts = self.pending.remove(&packet.message)?;
        Some(parts.into_values().flatten().collect())
    }
}

/// Sends packets, a few messages at a time.
pub(super) fn receive(size: usize, bytes: impl Fn(u8, usize) -> Box<[u8]>) -> u64 {
    let (mut random, mut receiver) = (Rng::with_seed(77), Receiver::default());
    let (mut window, mut sum) = (Vec::new(), 0_u64);
    for message in 0..size as u64 {
        let parts = random.u8(1..12);
        for part in 0..parts {
            let bytes = bytes(part, random.usize(40..200));
            window.push(Packet {
                message,
                part,
                parts,
                bytes,
            });
        }
        while window.len() > 100 {
            let packet = window.swap_remove(random.usize(..window.len()));
            if let Some(whole) = receiver.receive(packet) {
                let last = whole.last().copied().unwrap_or(0);
                sum = sum.rotate_left(7) ^ whole.len() as u64 ^ u64::from(last) << 30;
            }
        }
    }
    sum
}

pub fn run(size: usize) -> u64 {
    receive(size, |byte, length| vec![byte; length].into_boxed_slice())
}
