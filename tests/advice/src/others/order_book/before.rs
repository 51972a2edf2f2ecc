//! An exchange: orders by price, and for each price in the order of time.

use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) id: u64,
    pub(super) amount: u32,
}

pub(super) type Level = VecDeque<Order>;

struct Book {
    asks: BTreeMap<u32, Level>,
}

impl Book {
    fn offer(&mut self, price: u32, order: Order) {
        self.asks.entry(price).or_default().push_back(order);
    }

    /// Buys from the cheapest; returns what it costs.
    fn buy(&mut self, mut amount: u32) -> u64 {
        let mut cost = 0;
        while amount > 0 {
            let Some(mut level) = self.asks.first_entry() else {
                break;
            };
            let price = u64::from(*level.key());
            amount = fill(level.get_mut(), amount, price, &mut cost);
            if level.get().is_empty() {
                level.remove();
            }
        }
        cost
    }
}

/// Fills from the orders of a level; returns the amount that is left.
pub(super) fn fill(level: &mut Level, mut amount: u32, price: u64, cost: &mut u64) -> u32 {
    while amount > 0 {
        let Some(order) = level.front_mut() else {
            break;
        };
        let taken = amount.min(order.amount);
        amount -= taken;
        order.amount -= taken;
        *cost += price * u64::from(taken) + order.id % 2;
        if order.amount == 0 {
            level.pop_front();
        }
    }
    amount
}

/// What an exchange gets: offers around a price that moves, and bids.
pub(super) enum Message {
    Offer(u32, Order),
    Buy(u32),
}

pub(super) fn trade(size: usize, mut each: impl FnMut(Message) -> u64) -> u64 {
    let (mut random, mut middle) = (Rng::with_seed(70), 100_000);
    (0..10 * size as u64).fold(0, |sum: u64, id| {
        let message = if random.u8(..3) > 0 {
            middle = middle + random.u32(..9) - 4;
            let amount = random.u32(1..100);
            Message::Offer(middle + random.u32(..2000), Order { id, amount })
        } else {
            Message::Buy(random.u32(1..180))
        };
        sum.rotate_left(1) ^ each(message)
    })
}

pub fn run(size: usize) -> u64 {
    let mut book = Book {
        asks: BTreeMap::new(),
    };
    trade(size, |message| match message {
        Message::Offer(price, order) => {
            book.offer(price, order);
            0
        }
        Message::Buy(amount) => book.buy(amount),
    })
}
