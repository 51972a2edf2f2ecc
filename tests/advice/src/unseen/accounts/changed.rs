//! What transfers need beside the rest: apart from it, or at the beginning.

use super::before::{Account, Transfer, account, number, transfers};
use ccmorph::field_order;
use fastrand::Rng;
use std::collections::HashMap;
use std::ops::Deref;

macro_rules! with {
    ($name:ident, $Account:ident) => {
        pub fn $name(size: usize) -> u64 {
            let mut random = Rng::with_seed(118);
            let accounts = (0..size)
                .map(number)
                .map(|it| (it, account(it, &mut random).into()));
            let mut accounts: HashMap<u64, $Account> = accounts.collect();
            let mut transfer = |it: &Transfer| {
                let Some(from) = accounts.get_mut(&it.from) else {
                    return false;
                };
                if from.is_blocked || from.balance - it.amount < from.limit {
                    return false;
                }
                from.balance -= it.amount;
                from.transfers += 1;
                accounts.get_mut(&it.to).unwrap().balance += it.amount;
                true
            };
            let done = transfers(size).filter(|it| transfer(it)).count();
            let of = |account: &$Account| {
                let text = account.owner.len() + account.address.len() + account.letters.len();
                text as u64 + account.transfers + u64::from(account.iban[11])
            };
            accounts.values().map(of).sum::<u64>() ^ (done as u64) << 32
        }
    };
}

struct Slim {
    balance: i64,
    limit: i64,
    transfers: u64,
    is_blocked: bool,
    rest: Box<Account>,
}

impl Deref for Slim {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.rest
    }
}

impl From<Account> for Slim {
    fn from(account: Account) -> Self {
        Slim {
            balance: account.balance,
            limit: account.limit,
            transfers: account.transfers,
            is_blocked: account.is_blocked,
            rest: Box::new(account),
        }
    }
}

with!(split, Slim);

#[field_order(
    size = 120,
    offsets(balance = 0, limit = 8, transfers = 16, is_blocked = 24)
)]
struct Ordered {
    balance: i64,
    limit: i64,
    transfers: u64,
    is_blocked: bool,
    iban: [u8; 22],
    owner: String,
    address: String,
    letters: Vec<u32>,
}

impl From<Account> for Ordered {
    fn from(account: Account) -> Self {
        Ordered {
            balance: account.balance,
            limit: account.limit,
            transfers: account.transfers,
            is_blocked: account.is_blocked,
            iban: account.iban,
            owner: account.owner,
            address: account.address,
            letters: account.letters,
        }
    }
}

with!(field_order, Ordered);
