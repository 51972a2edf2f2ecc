//! No counters: another system, or built without the feature.

use std::io;

use super::{Event, GroupReading};

/// Never created.
#[derive(Debug)]
pub(super) enum EventGroup {}

impl EventGroup {
    /// # Errors
    /// Always `Unsupported`.
    pub(super) fn open(_events: &[Event]) -> io::Result<EventGroup> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "they need Linux and the feature `counters`",
        ))
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        std::iter::empty()
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn read(&mut self) -> io::Result<GroupReading> {
        match *self {}
    }
}
