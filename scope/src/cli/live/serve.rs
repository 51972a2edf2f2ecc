//! `ccscope serve`: snapshots of a recorded program over HTTP, by the paths at which Go programs
//! serve theirs, so that what collects those takes ours.
//!
//! Requests are answered one after the other, each on a connection of its own. A client that does
//! not send or take within a limit of time loses its connection, so that it holds up no other one.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::Args as ClapArgs;
use httparse::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempPath;

use super::super::socket::{Ask, ask};
use super::super::{CliError, fail, signals, usage};
use super::{ask_recorder, target};
use crate::exports::pprof;
use crate::profile::Profile;

/// A signal, or the end of the recording, is seen within this.
const LISTEN_INTERVAL: Duration = Duration::from_millis(100);
/// Whether somebody records the process is asked so often.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// For sending a request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// For taking an answer.
const ANSWER_TIME: Duration = Duration::from_secs(20);
const MAX_REQUEST_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// The paths, and the number that viewers show first.
const PATHS: [(&str, &str); 2] = [
    ("/debug/pprof/heap", "inuse_space"),
    ("/debug/pprof/allocs", "alloc_space"),
];

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The paths are /debug/pprof/heap and /debug/pprof/allocs, which differ in the number that is shown
first. Each request takes a snapshot. It ends with the recording, or by Ctrl-C.

Profiles name functions and files of the program. Every user of this machine can ask a port of it; a
socket of the file system is for those who may write to it.

Examples:
  ccscope serve 1234 --listen 127.0.0.1:6060
  go tool pprof -top http://127.0.0.1:6060/debug/pprof/heap
  ccscope serve --listen unix:/run/user/1000/heap     the one program that is recorded")]
pub(in super::super) struct ServeArgs {
    /// The process, which `ccscope run` or `attach` records; not needed if that is only one
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Listen at 127.0.0.1:PORT, where 0 is any free port, or at unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Address,
    /// Allow an address that other machines can reach
    #[arg(long)]
    any_address: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let address = text.parse().map(Address::Tcp);
        address.map_err(|_| "it is neither NUMBER:PORT, as 127.0.0.1:6060, nor unix:PATH")
    }
}

/// Answers until it is interrupted or nobody records the process any more.
pub(in super::super) fn run(args: &ServeArgs, err: &mut dyn Write) -> Result<(), CliError> {
    let (listener, name, _file) = listen(&args.listen, args.any_address)?;
    let pid = args.pid.map_or_else(target::the_only_one, Ok)?;
    ask_recorder(pid, &Ask::Who)?;
    signals::outlive();
    let end = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let end = end.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let end = end.ok_or_else(|| format!("process {pid} has ended"))?;
    let folder = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    writeln!(err, "ccscope: process {pid} at {name}")?;
    let is_answering = Arc::new(Mutex::new(()));
    let server = Server {
        pid,
        end,
        snapshot: folder.path().join("snapshot"),
        is_answering: Arc::clone(&is_answering),
    };
    // These end with this process: another one may keep them waiting.
    let answers = thread::spawn(move || server.answer_all(&listener));
    let recorded = thread::spawn(move || {
        // A command that is asked waits for a question, but not for long.
        let is_recorded = || !ask(pid, &Ask::Who).is_empty();
        while is_recorded() || is_recorded() {
            thread::sleep(ASK_INTERVAL);
        }
    });
    while !signals::is_interrupted() {
        if answers.is_finished() {
            let why = answers
                .join()
                .map_or_else(|_| String::new(), |why| format!(": {why}"));
            return fail(format!("no more requests are taken{why}"));
        }
        if recorded.is_finished() {
            drop(is_answering.lock());
            writeln!(err, "ccscope: process {pid} is no longer recorded")?;
            break;
        }
        thread::sleep(LISTEN_INTERVAL);
    }
    Ok(())
}

/// The socket, what it is called, and its file, which is removed with this.
fn listen(at: &Address, any: bool) -> Result<(OwnedFd, String, Option<TempPath>), CliError> {
    let failed = |at: &dyn Display, error| format!("cannot listen at {at}: {error}");
    match at {
        Address::Tcp(at) if !at.ip().is_loopback() && !any => usage(format!(
            "other machines can reach {at}, and profiles name functions and files: \
             `--any-address` allows that"
        )),
        Address::Tcp(at) => {
            let bound = TcpListener::bind(at).and_then(|it| Ok((it.local_addr()?, it)));
            let (at, socket) = bound.map_err(|error| failed(at, error))?;
            Ok((socket.into(), format!("http://{at}{}", PATHS[0].0), None))
        }
        Address::Unix(path) => {
            remove_unused(path)?;
            let bound = UnixListener::bind(path);
            let bound = bound.and_then(|it| Ok((it, TempPath::try_from_path(path)?)));
            let (socket, file) = bound.map_err(|error| failed(&path.display(), error))?;
            Ok((
                socket.into(),
                format!("unix:{}", path.display()),
                Some(file),
            ))
        }
    }
}

/// Removes a socket at which nobody listens, and nothing else.
fn remove_unused(path: &Path) -> Result<(), CliError> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return fail(format!("{} exists and is no socket", path.display()));
    }
    let tried = UnixStream::connect(path);
    if tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        // If it cannot be, that is told when another is to be there.
        drop(fs::remove_file(path));
    }
    Ok(())
}

struct Server {
    pid: u32,
    /// Readable once the process has ended.
    end: OwnedFd,
    snapshot: PathBuf,
    /// Held while a client is connected.
    is_answering: Arc<Mutex<()>>,
}

impl Server {
    /// Until the socket fails.
    fn answer_all(&self, listener: &OwnedFd) -> Errno {
        loop {
            match accept_with(listener, SocketFlags::CLOEXEC) {
                Ok(connection) => {
                    let _answering = self.is_answering.lock();
                    // What a client does is its own affair.
                    drop(self.answer(&connection));
                }
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => return error,
            }
        }
    }

    fn answer(&self, connection: &OwnedFd) -> io::Result<()> {
        let (mut request, mut part) = (Vec::new(), [0; 4096]);
        let end = Instant::now() + REQUEST_TIME;
        let answer = loop {
            let len = receive(connection, &mut part, end)?;
            if len == 0 {
                return Ok(());
            }
            request.extend_from_slice(&part[..len]);
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut parsed = httparse::Request::new(&mut headers);
            match parsed.parse(&request) {
                Ok(Status::Complete(_)) => {
                    let (method, target) = (parsed.method, parsed.path);
                    break self.answer_to(method.unwrap_or_default(), target.unwrap_or_default());
                }
                Ok(Status::Partial) if request.len() < MAX_REQUEST_BYTES => {}
                _ => break Answer::text("400 Bad Request", "this is no short request of HTTP/1"),
            }
        };
        send_all(connection, &answer.to_bytes())?;
        // Closing while something that has come is unread would take the answer back.
        shutdown(connection, Shutdown::Write)?;
        let end = Instant::now() + REQUEST_TIME;
        while receive(connection, &mut part, end)? > 0 {}
        Ok(())
    }

    fn answer_to(&self, method: &str, target: &str) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let known = PATHS.iter().find(|(known, _)| *known == path);
        if method != "GET" {
            let mut answer = Answer::text("405 Method Not Allowed", "the method is GET");
            answer.headers = "Allow: GET\r\n";
            if method == "HEAD" {
                answer.body.clear();
            }
            return answer;
        }
        match known {
            None if path == "/" => {
                let paths = PATHS.map(|(path, _)| path).join(" and ");
                Answer::text("200 OK", &format!("heap profiles are at {paths}"))
            }
            None => Answer::text("404 Not Found", "there is no such path"),
            Some(_) if query.split('&').any(|it| it.starts_with("seconds=")) => {
                let why = "profiles are of a moment: `seconds` has no meaning here";
                Answer::text("400 Bad Request", why)
            }
            Some((_, first)) => match self.profile(first) {
                Ok(body) => Answer {
                    status: "200 OK",
                    kind: "application/octet-stream",
                    headers: "",
                    body,
                },
                Err(why) => Answer::text("503 Service Unavailable", &why.to_string()),
            },
        }
    }

    fn profile(&self, first: &str) -> Result<Vec<u8>, CliError> {
        let no_time = Some(&Timespec::default());
        if poll(&mut [PollFd::new(&self.end, PollFlags::IN)], no_time) != Ok(0) {
            return fail(format!("process {} has ended", self.pid));
        }
        let taken = SystemTime::now();
        ask_recorder(self.pid, &Ask::Snapshot(self.snapshot.clone()))?;
        let profile = Profile::open(&self.snapshot)?;
        fs::remove_file(&self.snapshot)?;
        let mut body = Vec::new();
        pprof::write_heap(&profile, first, taken, &mut body)?;
        Ok(body)
    }
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    headers: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn text(status: &'static str, line: &str) -> Answer {
        Answer {
            status,
            kind: "text/plain; charset=utf-8",
            headers: "",
            body: format!("{line}\n").into_bytes(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
            self.status,
            self.kind,
            self.body.len(),
            self.headers
        );
        [head.as_bytes(), &self.body].concat()
    }
}

/// What comes until `end`; nothing once the other side sends no more.
fn receive(connection: &OwnedFd, part: &mut [u8], end: Instant) -> io::Result<usize> {
    wait(connection, PollFlags::IN, end)?;
    Ok(recv(connection, part, RecvFlags::DONTWAIT)?.0)
}

fn send_all(connection: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    let end = Instant::now() + ANSWER_TIME;
    while !bytes.is_empty() {
        wait(connection, PollFlags::OUT, end)?;
        let len = send(connection, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        bytes = &bytes[len..];
    }
    Ok(())
}

fn wait(connection: &OwnedFd, what: PollFlags, end: Instant) -> io::Result<()> {
    let left = end.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match retry_on_intr(|| poll(&mut [PollFd::new(connection, what)], Some(&left)))? {
        0 => Err(ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}
