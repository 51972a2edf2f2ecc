//! Another map of the prices.

use super::before::{Level, Message, fill, trade};
use ctree::CTreeMap;

pub fn container(size: usize) -> u64 {
    let mut asks: CTreeMap<u32, Level> = CTreeMap::new();
    trade(size, |message| match message {
        Message::Offer(price, order) => {
            asks.entry(price).or_default().push_back(order);
            0
        }
        Message::Buy(mut amount) => {
            let mut cost = 0;
            while amount > 0 {
                let Some(mut level) = asks.first_entry() else {
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
    })
}
