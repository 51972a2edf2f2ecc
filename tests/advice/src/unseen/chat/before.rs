//! A chat server: a message goes to the inboxes of all members of a room.

use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) struct User {
    name: String,
    inbox: VecDeque<Arc<str>>,
}

pub(super) struct Server {
    rooms: BTreeMap<String, Vec<usize>>,
    users: Vec<User>,
}

fn room(number: usize) -> String {
    format!("#room-{number}")
}

impl Server {
    pub(super) fn new(size: usize) -> Self {
        let mut random = Rng::with_seed(128);
        let rooms = size / 100 + 1;
        let mut members = |_: usize| {
            (0..random.usize(2..40))
                .map(|_| random.usize(..size))
                .collect()
        };
        let user = |number| User {
            name: format!("user{number}"),
            inbox: VecDeque::new(),
        };
        Server {
            rooms: (0..rooms).map(|it| (room(it), members(it))).collect(),
            users: (0..size).map(user).collect(),
        }
    }

    /// `new` makes the message, to be read after the second argument.
    fn post(&mut self, name: &str, text: &str, new: impl Fn(&str, Option<&Arc<str>>) -> Arc<str>) {
        let members = &self.rooms[name];
        let last = members.first().and_then(|it| self.users[*it].inbox.back());
        let message = new(text, last);
        for &member in members {
            self.users[member].inbox.push_back(message.clone());
        }
    }

    /// The user reads all that has come.
    fn read(&mut self, user: usize) -> u64 {
        let User { name, inbox } = &mut self.users[user];
        let messages = inbox.drain(..);
        let read = |sum: u64, it: Arc<str>| {
            sum.wrapping_mul(31) ^ it.len() as u64 ^ u64::from(it.as_bytes()[0])
        };
        messages.fold(name.len() as u64, read)
    }
}

pub(super) fn day(
    size: usize,
    mut server: Server,
    new: impl Fn(&str, Option<&Arc<str>>) -> Arc<str>,
) -> u64 {
    let mut random = Rng::with_seed(129);
    (0..20 * size).fold(0, |sum: u64, number| {
        if random.u8(..4) == 0 {
            let name = room(random.usize(..size / 100 + 1));
            let text = format!("{number}: {}", "hello ".repeat(random.usize(1..8)));
            server.post(&name, &text, &new);
        }
        sum.rotate_left(1) ^ server.read(random.usize(..size))
    })
}

pub fn run(size: usize) -> u64 {
    day(size, Server::new(size), |text, _| Arc::from(text))
}
