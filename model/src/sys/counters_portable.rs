//! No counters: another system, or built without them.

use std::io;

use crate::counters::{Event, GroupReading};

/// Never made.
#[derive(Debug)]
pub(crate) enum EventGroup {}

impl EventGroup {
    /// # Errors
    /// Always `Unsupported`.
    pub(crate) fn open(_events: &[Event]) -> io::Result<EventGroup> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "they are read on Linux alone, with the feature `counters`",
        ))
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        std::iter::empty()
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn stop(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn read(&mut self) -> io::Result<GroupReading> {
        match *self {}
    }
}
