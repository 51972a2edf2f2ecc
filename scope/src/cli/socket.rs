//! The socket on which runtimes hand over their captures.

use std::fs::{self, File, Permissions};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// A process has sent its capture.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) pid: u32,
    pub(super) capture: File,
}

/// A process ends, and waits until this is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) pid: u32,
    _connection: UnixStream,
}

/// What a process has sent.
#[derive(Debug)]
pub(super) enum Message {
    Arrival(Arrival),
    Ending(Ending),
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
                .prefix("ccscope")
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

    /// The next message that has come, without waiting for one.
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

/// Takes the message of 16 bytes (magic, process, its parent), and a descriptor with that of an
/// arrival.
fn receive(stream: UnixStream) -> Option<Message> {
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
    let (magic, rest) = message.split_first_chunk::<8>()?;
    let pid = u32::from_ne_bytes(*rest.first_chunk::<4>()?);
    let is_whole = received.bytes == message.len();
    match u64::from_ne_bytes(*magic) {
        MAGIC if is_whole => Some(Message::Arrival(Arrival {
            pid,
            capture: capture?.into(),
        })),
        ENDS if is_whole => Some(Message::Ending(Ending {
            pid,
            _connection: stream,
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Seek, Write};

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
            panic!("no arrival");
        };
        assert_eq!(arrival.pid, 7);
        arrival.capture.rewind().unwrap();
        let mut text = String::new();
        arrival.capture.read_to_string(&mut text).unwrap();
        assert_eq!(text, "capture");
        assert!(listener.accept().is_none());
    }
}
