//! Messages of many users, each user's latest of which are read while others arrive.
//!
//! Between two messages of one user lie those of many others. Hinted at the one before, up to four
//! lie in a cache line.

use super::mix;

hinted!(post);

struct Message {
    text: u64,
    earlier: Link,
}

type Link = Option<Box<Message>>;

fn post(size: usize, new: impl Fn(&Link, Message) -> Box<Message>) -> u64 {
    let mut random = fastrand::Rng::with_seed(10);
    let mut users: Vec<Link> = Vec::new();
    users.resize_with(size / 32 + 1, || None);
    let mut sum = 0;
    for text in 0..size as u64 {
        let user = random.usize(..users.len());
        // The hint is the user's link, which means the message behind it.
        let mut message = new(
            &users[user],
            Message {
                text,
                earlier: None,
            },
        );
        message.earlier = users[user].take();
        users[user] = Some(message);
        let mut at = &users[random.usize(..users.len())];
        for _ in 0..12 {
            let Some(message) = at else { break };
            sum = mix(sum, message.text);
            at = &message.earlier;
        }
    }
    sum
}
