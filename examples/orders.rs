//! The program of `docs/use/tutorial.md`: what customers owe, as first written.

use std::collections::{BTreeMap, HashMap};

/// A customer with an account of its own.
struct Customer {
    name: String,
    orders: Vec<usize>,
}

/// Numbers that look random and are the same in each run.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn main() {
    let mut seed = 1;
    let numbers: Vec<u64> = (0..800_000).map(|_| next(&mut seed)).collect();

    let mut owed = BTreeMap::new();
    for &number in &numbers {
        owed.insert(number, 0_u64);
    }
    let mut customers = HashMap::new();
    for &number in &numbers[..20_000] {
        let name = format!("customer {number}");
        let orders = Vec::with_capacity(64);
        customers.insert(number, Box::new(Customer { name, orders }));
    }

    // Each order belongs to another customer.
    for order in 0..2_000_000 {
        let number = numbers[order * 7919 % numbers.len()];
        let balance = owed.get_mut(&number).expect("a known customer");
        *balance += number % 97;
        if let Some(customer) = customers.get_mut(&number) {
            let label = format!("{}, order {order}", customer.name);
            assert!(!label.is_empty());
            customer.orders.push(order);
        }
    }

    let most = owed.values().max().expect("customers");
    let orders: usize = customers
        .values()
        .map(|customer| customer.orders.len())
        .sum();
    println!("{most} owed at most, {orders} orders of customers with an account");
}
