//! A server of axum with one thread, and a client that keeps its connection: `axum REQUESTS`.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

type Names = Arc<Vec<String>>;

async fn item(State(names): State<Names>, Path(number): Path<usize>) -> Json<Value> {
    let near: Vec<_> = names
        .iter()
        .cycle()
        .skip(number % names.len())
        .take(20)
        .collect();
    Json(json!({ "number": number, "near": near }))
}

fn ask(address: SocketAddr, requests: usize) -> Result<usize, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let (mut sum, mut line, mut body) = (0, String::new(), Vec::new());
    for number in 0..requests {
        stream
            .write_all(format!("GET /items/{number} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes())?;
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            answers.read_line(&mut line)?;
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse()?;
            }
        }
        line.clear();
        body.resize(length, 0);
        answers.read_exact(&mut body)?;
        sum += serde_json::from_slice::<Value>(&body)?["near"]
            .to_string()
            .len();
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let requests = std::env::args().nth(1).ok_or("axum REQUESTS")?.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let names = (0..1000)
        .map(|number| format!("the name of {number}"))
        .collect();
    let routes = Router::new()
        .route("/items/{number}", get(item))
        .with_state(Arc::new(names));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || runtime.block_on(async { axum::serve(listener, routes).await }));
    println!("{}", ask(address, requests)?);
    Ok(())
}
