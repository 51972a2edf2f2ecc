//! The socket on which runtimes hand over their captures, and other commands ask for something.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::geteuid;
use tempfile::TempDir;

use super::CliError;
use crate::capture_format::{ENDS, MAGIC};

/// First word of what another command asks.
const ASKS: u64 = u64::from_le_bytes(*b"ccscope?");

/// What came.
#[derive(Debug)]
pub(super) enum Message {
    Arrival(Arrival),
    Ending(Ending),
    Request(Request),
}

/// What another command asks of the one that records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Which process this is about.
    Who,
    /// A profile of this moment, written to a path.
    Snapshot(PathBuf),
    /// The end of an attached recording.
    End,
    /// The name of a file that is the capture, to be opened while it is recorded.
    Capture,
}

impl Ask {
    fn kind(&self) -> u32 {
        match self {
            Ask::Who => 0,
            Ask::Snapshot(_) => 1,
            Ask::End => 2,
            Ask::Capture => 3,
        }
    }
}

/// A command that waits for its answer.
#[derive(Debug)]
pub(super) struct Request {
    /// 0 stands for the first process.
    pub(super) pid: u32,
    pub(super) ask: Ask,
    stream: UnixStream,
}

impl Request {
    /// Answers: with what was done, or why it was not.
    pub(super) fn answer(mut self, result: Result<String, String>) {
        let (first, text) = match result {
            Ok(text) => (b'+', text),
            Err(text) => (b'-', text),
        };
        // The command may have been interrupted.
        drop(self.stream.write_all(&[&[first], text.as_bytes()].concat()));
    }
}

/// Asks each command of this user that records about the process `pid`; 0 stands for the first of
/// each. Answers are what was done, or why it was not.
pub(super) fn ask(pid: u32, ask: &Ask) -> Vec<Result<String, String>> {
    let folders = fs::read_dir(env::temp_dir())
        .into_iter()
        .flatten()
        .flatten();
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    folders
        .filter(|folder| is_ours(&folder.file_name()))
        .filter_map(|folder| ask_one(&folder.path().join("socket"), pid, ask))
        .collect()
}

/// `None` if it knows nothing of the process.
fn ask_one(path: &Path, pid: u32, ask: &Ask) -> Option<Result<String, String>> {
    let mut stream = UnixStream::connect(path).ok()?;
    if socket_peercred(&stream).ok()?.uid != geteuid() {
        return None;
    }
    let target = match ask {
        Ask::Snapshot(path) => path.as_os_str().as_encoded_bytes(),
        Ask::Who | Ask::End | Ask::Capture => &[],
    };
    let mut message = ASKS.to_ne_bytes().to_vec();
    message.extend([pid.to_ne_bytes(), ask.kind().to_ne_bytes()].concat());
    stream.write_all(&message).ok()?;
    stream.write_all(target).ok()?;
    stream.shutdown(Shutdown::Write).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let (first, text) = answer.split_first()?;
    let text = String::from_utf8_lossy(text).into_owned();
    Some(if *first == b'+' { Ok(text) } else { Err(text) })
}

/// A process has sent its capture.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) pid: u32,
    pub(super) capture: File,
}

/// Of the names of the folders that sockets are in.
const PREFIX: &str = "ccscope";

/// A process ends, and waits until this is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) pid: u32,
    _connection: UnixStream,
}

#[derive(Debug)]
pub(super) struct Listener {
    socket: UnixListener,
    folder: TempDir,
}

impl Listener {
    pub(super) fn new() -> Result<Listener, CliError> {
        let open = || {
            let mine = Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(mine)
                .tempdir()?;
            let socket = UnixListener::bind(folder.path().join("socket"))?;
            socket.set_nonblocking(true)?;
            Ok(Listener { socket, folder })
        };
        open().map_err(|error: std::io::Error| format!("cannot open a socket: {error}").into())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// What processes had to say, each line once.
    pub(super) fn said(&self) -> Vec<String> {
        lines_of(&self.folder.path().join("said"))
    }

    /// The next process or request that has come, without waiting for one.
    pub(super) fn accept(&self) -> Option<Message> {
        loop {
            let (stream, _) = self.socket.accept().ok()?;
            // Something else that connects is not worth a line.
            if let Some(message) = receive(stream) {
                return Some(message);
            }
        }
    }
}

/// The lines of a file to which processes append, each once; names of programs are in them.
pub fn lines_of(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let line = line.replace(char::is_control, "?");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Takes the message of 16 bytes (magic, process, its parent), with a descriptor if it is that of
/// an arrival; or a request (magic, process, what), and its path.
fn receive(mut stream: UnixStream) -> Option<Message> {
    // The folder is closed to others; a process of theirs may have got the socket otherwise.
    if socket_peercred(&stream).ok()?.uid != geteuid() {
        return None;
    }
    // The runtime sends right after it has connected; a stranger may not.
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let mut message = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut message)];
    let received = recvmsg(&stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut descriptors = control.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let capture: Option<OwnedFd> = descriptors.next();
    if received.bytes != message.len() {
        return None;
    }
    let (magic, rest) = message.split_first_chunk::<8>()?;
    let (pid, what) = rest.split_first_chunk::<4>()?;
    let pid = u32::from_ne_bytes(*pid);
    match (u64::from_ne_bytes(*magic), capture) {
        (MAGIC, Some(capture)) => Some(Message::Arrival(Arrival {
            pid,
            capture: capture.into(),
        })),
        (ENDS, None) => Some(Message::Ending(Ending {
            pid,
            _connection: stream,
        })),
        (ASKS, None) => {
            let ask = match u32::from_ne_bytes(*what.first_chunk()?) {
                0 => Ask::Who,
                1 => Ask::Snapshot(path(&mut stream)?),
                2 => Ask::End,
                3 => Ask::Capture,
                _ => return None,
            };
            Some(Message::Request(Request { pid, ask, stream }))
        }
        _ => None,
    }
}

fn path(stream: &mut UnixStream) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    stream.take(4096).read_to_end(&mut bytes).ok()?;
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Seek};

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    /// Sends what a runtime sends.
    fn send(listener: &Listener, magic: u64, file: &File) {
        let stream = UnixStream::connect(listener.path()).unwrap();
        let mut message = magic.to_ne_bytes().to_vec();
        message.extend([7_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].concat());
        let descriptors = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(
            &stream,
            &[IoSlice::new(&message)],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
    }

    #[test]
    fn requests_are_answered() {
        let listener = Listener::new().unwrap();
        let path = listener.path();
        let wanted = Ask::Snapshot("/a folder/file".into());
        let asked = wanted.clone();
        let asks = std::thread::spawn(move || ask_one(&path, 7, &asked));
        let request = loop {
            if let Some(Message::Request(request)) = listener.accept() {
                break request;
            }
        };
        assert_eq!((request.pid, &request.ask), (7, &wanted));
        request.answer(Err("why".to_owned()));
        assert_eq!(asks.join().unwrap(), Some(Err("why".to_owned())));
        // One that is not answered knows nothing.
        let path = listener.path();
        let asks = std::thread::spawn(move || ask_one(&path, 7, &Ask::Who));
        while listener.accept().is_none() {}
        assert_eq!(asks.join().unwrap(), None);
    }

    #[test]
    fn captures_arrive_and_strangers_are_ignored() {
        let listener = Listener::new().unwrap();
        let mode = listener
            .folder
            .path()
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(listener.accept().is_none());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"capture").unwrap();
        drop(UnixStream::connect(listener.path()).unwrap());
        send(&listener, 1, &file);
        send(&listener, MAGIC, &file);
        let Some(Message::Arrival(mut arrival)) = listener.accept() else {
            panic!("no capture came");
        };
        assert_eq!(arrival.pid, 7);
        arrival.capture.rewind().unwrap();
        let mut text = String::new();
        arrival.capture.read_to_string(&mut text).unwrap();
        assert_eq!(text, "capture");
        assert!(listener.accept().is_none());
    }
}
