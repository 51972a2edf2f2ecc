//! A server of axum whose requests are spans, and a client that asks it so often as it is told.
//!
//! `server REQUESTS`: for tests of `ccscope run --regions`.

use std::error::Error;
use std::future::Future;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Writes and sums so many bytes, in four parts between which others run.
async fn work(bytes: usize) -> String {
    let mut sum = 0_u64;
    let mut buffer = vec![0_u8; bytes];
    for part in buffer.chunks_mut(bytes.div_ceil(4)) {
        for (value, byte) in (0_u8..=255).cycle().zip(&mut *part) {
            *byte = value;
        }
        yield_now().await;
        sum += part.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }
    sum.to_string()
}

async fn small() -> String {
    work(1000).instrument(info_span!("small")).await
}

async fn large() -> String {
    work(200_000).instrument(info_span!("large")).await
}

async fn ask(listener: std::net::SocketAddr, path: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(listener).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.rsplit("\r\n").next().unwrap_or_default().to_owned())
}

fn both<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> impl Future {
    async { tokio::join!(first, second) }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::registry()
        .with(ccscope::Regions::new())
        .init();
    let requests: u64 = std::env::args().nth(1).ok_or("server REQUESTS")?.parse()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let routes = Router::new()
        .route("/small", get(small))
        .route("/large", get(large));
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    for _ in 0..requests {
        // Side by side, so that their polls alternate.
        both(ask(address, "/small"), ask(address, "/large")).await;
    }
    let answers = [ask(address, "/small").await?, ask(address, "/large").await?];
    server.abort();
    println!("{} {}", answers[0], answers[1]);
    Ok(())
}
