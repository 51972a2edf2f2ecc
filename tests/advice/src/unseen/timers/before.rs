//! A server's connections: each is closed when nothing has come from it for some time.

use fastrand::Rng;
use std::collections::{BTreeSet, HashMap};

pub(super) type Id = u32;

pub(super) struct Connection {
    pub(super) deadline: u64,
    pub(super) bytes: u64,
    pub(super) peer: String,
}

const CONNECTIONS: f64 = 20_000.0;
const PATIENCE: u64 = 50_000;

struct Server {
    connections: HashMap<Id, Connection>,
    deadlines: BTreeSet<(u64, Id)>,
}

impl Server {
    fn receive(&mut self, id: Id, bytes: u64, deadline: u64) {
        let connection = { self.connections.entry(id) }.or_insert_with(|| Connection {
            deadline,
            bytes: 0,
            peer: peer(id),
        });
        connection.bytes += bytes;
        self.deadlines.remove(&(connection.deadline, id));
        connection.deadline = deadline;
        self.deadlines.insert((deadline, id));
    }

    /// Closes what has been silent for too long.
    fn expire(&mut self, now: u64) -> u64 {
        let mut sum = 0;
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_first();
            let closed = self.connections.remove(&id).unwrap();
            sum += closed.bytes ^ closed.peer.len() as u64;
        }
        sum
    }
}

pub(super) fn peer(id: Id) -> String {
    format!("10.{}.{}.{}", id >> 16 & 255, id >> 8 & 255, id & 255)
}

/// What comes in; small requests are answered sooner. A tick comes after each hundred.
pub(super) enum Event {
    Received { id: Id, bytes: u64, deadline: u64 },
    Tick(u64),
}

pub(super) fn events(size: usize, mut happens: impl FnMut(Event) -> u64) -> u64 {
    let mut random = Rng::with_seed(111);
    (0..5 * size as u64).fold(0, |sum: u64, now| {
        let bytes = random.u64(1..1500);
        let event = match now % 101 {
            100 => Event::Tick(now),
            _ => Event::Received {
                id: (random.f64().powi(2) * CONNECTIONS) as Id,
                bytes,
                deadline: now + PATIENCE / 4 + bytes * PATIENCE / 2000,
            },
        };
        sum.rotate_left(1) ^ happens(event)
    })
}

pub fn run(size: usize) -> u64 {
    let mut server = Server {
        connections: HashMap::new(),
        deadlines: BTreeSet::new(),
    };
    events(size, |event| match event {
        Event::Received {
            id,
            bytes,
            deadline,
        } => {
            server.receive(id, bytes, deadline);
            0
        }
        Event::Tick(now) => server.expire(now),
    }) ^ server.connections.len() as u64
}
