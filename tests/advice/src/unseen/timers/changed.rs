//! Another set of the deadlines, or a heap in which the old ones stay until they pass.

use super::before::{Connection, Event, Id, events, peer};
use ctree::CTreeSet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Returns the former deadline.
fn receive(connections: &mut HashMap<Id, Connection>, id: Id, bytes: u64, deadline: u64) -> u64 {
    let connection = connections.entry(id).or_insert_with(|| Connection {
        deadline,
        bytes: 0,
        peer: peer(id),
    });
    connection.bytes += bytes;
    std::mem::replace(&mut connection.deadline, deadline)
}

fn close(connections: &mut HashMap<Id, Connection>, id: Id) -> u64 {
    let closed = connections.remove(&id).unwrap();
    closed.bytes ^ closed.peer.len() as u64
}

pub fn container(size: usize) -> u64 {
    let (mut connections, mut deadlines) = (HashMap::new(), CTreeSet::new());
    events(size, |event| {
        let mut sum = 0;
        match event {
            Event::Received {
                id,
                bytes,
                deadline,
            } => {
                deadlines.remove(&(receive(&mut connections, id, bytes, deadline), id));
                deadlines.insert((deadline, id));
            }
            Event::Tick(now) => {
                while let Some(&(_, id)) = deadlines.first().filter(|first| first.0 <= now) {
                    deadlines.pop_first();
                    sum += close(&mut connections, id);
                }
            }
        }
        sum
    }) ^ connections.len() as u64
}

pub fn idea(size: usize) -> u64 {
    let (mut connections, mut deadlines) = (HashMap::new(), BinaryHeap::new());
    events(size, |event| {
        let mut sum = 0;
        match event {
            Event::Received {
                id,
                bytes,
                deadline,
            } => {
                receive(&mut connections, id, bytes, deadline);
                deadlines.push(Reverse((deadline, id)));
            }
            Event::Tick(now) => {
                while let Some(&Reverse((deadline, id))) = deadlines.peek() {
                    if deadline > now {
                        break;
                    }
                    deadlines.pop();
                    if connections
                        .get(&id)
                        .is_some_and(|it| it.deadline == deadline)
                    {
                        sum += close(&mut connections, id);
                    }
                }
            }
        }
        sum
    }) ^ connections.len() as u64
}
