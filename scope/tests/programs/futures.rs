//! Boxes futures that hold much across an await, and such that hold little.

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Ready when it is polled again.
async fn later() {
    let mut polls = [Poll::Ready(()), Poll::Pending].into_iter().rev();
    poll_fn(|_| polls.next().unwrap()).await;
}

struct Server<T>(T);

impl<T: Copy + Into<u64>> Server<T> {
    async fn fill(&self, from: u8) -> u64 {
        let mut scratch = [from; 16384];
        later().await; // scratch
        black_box(&mut scratch)[100] += 1;
        self.0.into() + u64::from(scratch[100])
    }

    /// The large local is that of a future which it awaits.
    async fn serve(&self, from: u8) -> u64 {
        self.fill(from).await + u64::from(from)
    }
}

async fn sum(numbers: [u64; 1500]) -> u64 {
    later().await;
    black_box(&numbers).iter().sum()
}

async fn small(from: u64) -> u64 {
    let lines = [from; 40];
    later().await;
    black_box(&lines)[3]
}

/// The large local is dropped before the await.
async fn freed(from: u64) -> u64 {
    let sum = black_box(&[from; 2000]).iter().sum::<u64>();
    later().await;
    sum
}

fn main() {
    let server = Server(4_u32);
    let mut futures: Vec<Pin<Box<dyn Future<Output = u64>>>> = Vec::new();
    for from in 0..100 {
        futures.push(Box::pin(server.serve(from)));
        futures.push(Box::pin(sum([from.into(); 1500])));
        futures.push(Box::pin(async move {
            let table = vec![[from; 3000]].pop().unwrap_or([0; 3000]);
            later().await; // table
            u64::from(black_box(&table)[7])
        }));
        for _ in 0..20 {
            futures.push(Box::pin(small(from.into())));
            futures.push(Box::pin(freed(from.into())));
        }
    }
    let mut context = Context::from_waker(Waker::noop());
    for future in &mut futures {
        while future.as_mut().poll(&mut context).is_pending() {}
    }
}
