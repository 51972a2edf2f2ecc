//! A calendar of a firm's rooms: which are free between two times of a day?

use fastrand::Rng;
use std::collections::BTreeMap;

pub(super) const DAYS: u32 = 730;

#[derive(Clone)]
pub(super) struct Event {
    pub(super) title: String,
    pub(super) room: u8,
    pub(super) from: u16,
    pub(super) to: u16,
}

/// What the calendar is asked, or told.
pub(super) enum Request {
    Book(u32, Event),
    /// How many minutes are booked in these days.
    Load(u32, u32),
    /// Whether a room is free on a day.
    IsFree(u32, u8, u16),
    /// A day has passed; a new one can be booked.
    NextDay(u32),
}

/// Books a room if it is free.
pub(super) fn book(day: &mut Vec<Event>, event: Event) -> u64 {
    let meets = |it: &Event| it.room == event.room && it.from < event.to && event.from < it.to;
    let is_free = !day.iter().any(meets);
    if is_free {
        day.push(event);
    }
    u64::from(is_free)
}

pub(super) fn is_free(day: &[Event], room: u8, time: u16) -> u64 {
    u64::from(
        !day.iter()
            .any(|it| it.room == room && (it.from..it.to).contains(&time)),
    )
}

pub(super) fn load(day: &[Event]) -> u64 {
    let minutes = |it: &Event| u64::from(it.to - it.from) + it.title.len() as u64;
    day.iter().map(minutes).sum()
}

pub(super) fn work(size: usize, mut answer: impl FnMut(Request) -> u64) -> u64 {
    let mut random = Rng::with_seed(135);
    let mut today = 0;
    (0..size).fold(0, |sum: u64, number| {
        if number % 500 == 0 {
            today += 1;
            answer(Request::NextDay(today - 1));
        }
        let day = today + random.u32(..DAYS);
        let (from, room) = (random.u16(480..1080), random.u8(..5));
        let request = match random.u8(..8) {
            0..3 => {
                let (title, to) = (format!("meeting {number}"), from + random.u16(15..90));
                Request::Book(
                    day,
                    Event {
                        title,
                        room,
                        from,
                        to,
                    },
                )
            }
            3 => Request::Load(day, day + random.u32(1..14)),
            _ => Request::IsFree(day, room, from),
        };
        sum.rotate_left(1) ^ answer(request)
    })
}

pub fn run(size: usize) -> u64 {
    let mut days: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    work(size, |request| match request {
        Request::Book(day, event) => book(days.entry(day).or_default(), event),
        Request::Load(from, to) => days.range(from..to).map(|day| load(day.1)).sum(),
        Request::IsFree(day, room, time) => {
            days.get(&day).map_or(1, |day| is_free(day, room, time))
        }
        Request::NextDay(day) => days.remove(&day).map_or(0, |day| load(&day)),
    })
}
