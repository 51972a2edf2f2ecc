//! Rules that filter messages: small trees of conditions, asked for each message.

use fastrand::Rng;

pub(super) enum Rule {
    Port(u16),
    Longer(u32),
    Flag(u8),
    Not(Box<Rule>),
    All(Vec<Box<Rule>>),
    Any(Vec<Box<Rule>>),
}

struct Message {
    port: u16,
    length: u32,
    flags: u8,
}

impl Rule {
    fn applies(&self, message: &Message) -> bool {
        match self {
            Rule::Port(port) => message.port == *port,
            Rule::Longer(length) => message.length > *length,
            Rule::Flag(flag) => message.flags & (1 << flag) != 0,
            Rule::Not(rule) => !rule.applies(message),
            Rule::All(rules) => rules.iter().all(|rule| rule.applies(message)),
            Rule::Any(rules) => rules.iter().any(|rule| rule.applies(message)),
        }
    }
}

fn rule(random: &mut Rng, depth: usize) -> Box<Rule> {
    let some = |random: &mut Rng| {
        let count = random.usize(2..5);
        (0..count).map(|_| rule(random, depth - 1)).collect()
    };
    Box::new(match random.u8(..if depth == 0 { 4 } else { 12 }) {
        0 => Rule::Port(random.u16(..40)),
        1 | 2 => Rule::Longer(random.u32(..1500)),
        3 => Rule::Flag(random.u8(..8)),
        4 => Rule::Not(rule(random, depth - 1)),
        5..8 => Rule::All(some(random)),
        _ => Rule::Any(some(random)),
    })
}

pub(super) fn rules() -> Vec<Box<Rule>> {
    let mut random = Rng::with_seed(75);
    (0..60).map(|_| rule(&mut random, 5)).collect()
}

pub(super) fn filter(size: usize, rules: &[Box<Rule>]) -> u64 {
    let mut random = Rng::with_seed(76);
    (0..size).fold(0, |sum: u64, _| {
        let message = Message {
            port: random.u16(..40),
            length: random.u32(..1500),
            flags: random.u8(..),
        };
        let applying = rules.iter().filter(|rule| rule.applies(&message)).count();
        sum.rotate_left(5) ^ applying as u64
    })
}

pub fn run(size: usize) -> u64 {
    filter(size, &rules())
}
