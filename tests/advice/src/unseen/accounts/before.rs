//! A bank's accounts in a hash map, between which money is transferred.

use fastrand::Rng;
use std::collections::HashMap;

pub(super) struct Account {
    pub(super) owner: String,
    pub(super) address: String,
    pub(super) iban: [u8; 22],
    pub(super) limit: i64,
    pub(super) letters: Vec<u32>,
    pub(super) balance: i64,
    pub(super) transfers: u64,
    pub(super) is_blocked: bool,
}

pub(super) fn account(number: u64, random: &mut Rng) -> Account {
    let mut iban = [b'0'; 22];
    iban[4..12].copy_from_slice(&number.to_be_bytes());
    Account {
        owner: format!("Owner of {number}"),
        address: format!("{} Main Street", number % 1000),
        iban,
        limit: -random.i64(0..100_000),
        letters: Vec::new(),
        balance: random.i64(0..1_000_000),
        transfers: 0,
        is_blocked: random.u8(..50) == 0,
    }
}

pub(super) struct Transfer {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) amount: i64,
}

/// Numbers of accounts as they are given out.
pub(super) fn number(which: usize) -> u64 {
    4_000_000 + 7 * which as u64
}

pub(super) fn transfers(size: usize) -> impl Iterator<Item = Transfer> {
    let mut random = Rng::with_seed(117);
    (0..5 * size).map(move |_| {
        let mut one = || number(random.usize(..size));
        let (from, to) = (one(), one());
        Transfer {
            from,
            to,
            amount: random.i64(1..50_000),
        }
    })
}

struct Bank {
    accounts: HashMap<u64, Account>,
}

impl Bank {
    fn transfer(&mut self, transfer: &Transfer) -> bool {
        let Some(from) = self.accounts.get_mut(&transfer.from) else {
            return false;
        };
        if from.is_blocked || from.balance - transfer.amount < from.limit {
            return false;
        }
        from.balance -= transfer.amount;
        from.transfers += 1;
        let to = self.accounts.get_mut(&transfer.to).unwrap();
        to.balance += transfer.amount;
        true
    }

    /// Once a month.
    fn report(&self) -> u64 {
        let of = |account: &Account| {
            let text = account.owner.len() + account.address.len() + account.letters.len();
            text as u64 + account.transfers + u64::from(account.iban[11])
        };
        self.accounts.values().map(of).sum()
    }
}

pub fn run(size: usize) -> u64 {
    let mut random = Rng::with_seed(118);
    let accounts = (0..size)
        .map(number)
        .map(|it| (it, account(it, &mut random)));
    let mut bank = Bank {
        accounts: accounts.collect(),
    };
    let done = transfers(size).filter(|it| bank.transfer(it)).count();
    bank.report() ^ (done as u64) << 32
}
