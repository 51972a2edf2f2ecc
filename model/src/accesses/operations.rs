//! Random operations, read by read.

use super::{Accesses, Order};
use crate::{Access, NO_NODE};

/// A stream of random operations.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    accesses: &'a Accesses,
    state: u64,
    /// The points of one operation.
    points: Vec<u32>,
}

impl<'a> Operations<'a> {
    pub(super) fn new(accesses: &'a Accesses, seed: u64) -> Operations<'a> {
        Operations {
            accesses,
            // Any odd constant keeps the generator from its fixed point 0.
            state: seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1,
            points: Vec::new(),
        }
    }

    /// Replaces what is in `reads` by the reads of one operation, in their order. O(reads), and
    /// O(log n) where some are more frequent than others.
    pub fn next_into(&mut self, reads: &mut Vec<Access>) {
        reads.clear();
        let random = self.next_random();
        if let Some(ticket) = self.accesses.tickets.draw(random) {
            self.of_ticket(ticket, reads);
        }
    }

    /// The reads of the operation with this ticket, behind what is in `reads`.
    pub(super) fn of_ticket(&mut self, ticket: u32, reads: &mut Vec<Access>) {
        let accesses = self.accesses;
        self.points.clear();
        match &accesses.order {
            Order::Sequence(points) => {
                reads.extend(points.iter().map(|&v| accesses.access(v)));
                return;
            }
            Order::Path => self.push_path(ticket),
            Order::Range { keys } => {
                self.push_path(ticket);
                let last = ticket.saturating_add(keys.saturating_sub(1));
                let all = accesses.tickets.count();
                for key in ticket + 1..=last.min(all.saturating_sub(1)) {
                    accesses.points.push_successor(key, &mut self.points);
                }
            }
            Order::Shift { runs } => {
                self.push_path(ticket);
                // Gap g lies before key g; the one behind a run's last key belongs to that run.
                let next = runs.partition_point(|run| run.start <= ticket);
                if let Some(run) = next.checked_sub(1).and_then(|i| runs.get(i)) {
                    for key in ticket..run.end {
                        self.points.extend(accesses.points.own(key));
                    }
                }
            }
        }
        reads.extend(self.points.iter().map(|&v| accesses.access(v)));
    }

    /// The points from a root to where the ticket's search ends.
    fn push_path(&mut self, ticket: u32) {
        let start = self.points.len();
        let shape = self.accesses.points.shape();
        let mut next = self.accesses.tickets.end(ticket).unwrap_or(NO_NODE);
        while next != NO_NODE {
            self.points.push(next);
            next = shape.parent(next);
        }
        self.points[start..].reverse();
    }

    /// xorshift64* (S. Vigna, *An experimental exploration of Marsaglia's xorshift generators*,
    /// 2016).
    fn next_random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
