//! A hash table with chains, from which entries go and to which others come.
//!
//! After some churn the entries of a chain lie anywhere, so each is a miss. Entries are small: four
//! of them fit a cache line if each new one is put beside the one before it.

use super::{bucket, mix};

hinted!(churn);

struct Entry {
    key: u32,
    count: u32,
    next: Link,
}

type Link = Option<Box<Entry>>;

fn churn(size: usize, new: impl Fn(&Link, Entry) -> Box<Entry>) -> u64 {
    let mut buckets: Vec<Link> = Vec::new();
    buckets.resize_with((size / 4).next_power_of_two(), || None);
    let keys = u32::try_from(2 * size).expect("few keys");
    let mut random = fastrand::Rng::with_seed(1);
    let mut sum = 0;
    for step in 0..5 * size {
        let key = random.u32(..keys);
        let bucket = bucket(key.into(), buckets.len());
        let mut link = &mut buckets[bucket];
        while link.as_ref().is_some_and(|entry| entry.key != key) {
            link = &mut link.as_mut().expect("just seen").next;
        }
        match link {
            None if step % 4 == 0 => {
                let (count, next) = (1, None);
                *link = Some(new(link, Entry { key, count, next }));
            }
            Some(entry) if step % 8 == 1 => *link = entry.next.take(),
            Some(entry) => {
                entry.count += 1;
                sum = mix(sum, u64::from(entry.count));
            }
            None => {}
        }
    }
    sum
}
