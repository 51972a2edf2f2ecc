//! Another map of the days, or a ring of them.

use super::before::{DAYS, Event, Request, book, is_free, load, work};
use ctree::CTreeMap;
use std::collections::VecDeque;

pub fn container(size: usize) -> u64 {
    let mut days: CTreeMap<u32, Vec<Event>> = CTreeMap::new();
    work(size, |request| match request {
        Request::Book(day, event) => book(days.entry(day).or_default(), event),
        Request::Load(from, to) => days.range(from..to).map(|day| load(day.1)).sum(),
        Request::IsFree(day, room, time) => {
            days.get(&day).map_or(1, |day| is_free(day, room, time))
        }
        Request::NextDay(day) => days.remove(&day).map_or(0, |day| load(&day)),
    })
}

pub fn idea(size: usize) -> u64 {
    let (mut days, mut first) = (VecDeque::from(vec![Vec::new(); DAYS as usize + 15]), 0);
    work(size, |request| match request {
        Request::Book(day, event) => book(&mut days[(day - first) as usize], event),
        Request::Load(from, to) => (from..to)
            .map(|day| load(&days[(day - first) as usize]))
            .sum(),
        Request::IsFree(day, room, time) => is_free(&days[(day - first) as usize], room, time),
        Request::NextDay(day) => {
            let past = days.pop_front().map_or(0, |day| load(&day));
            days.push_back(Vec::new());
            first = day + 1;
            past
        }
    })
}
