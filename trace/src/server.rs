//! Answers the tracer's questions while a program runs.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout, socket_peercred},
};
use rustix::process::geteuid;
use tempfile::TempDir;

use super::bodies::{REFUSED, body};
use super::branches::Files;
use super::instructions::answer;
use ccscope::cli::shared::lines_of;

use super::wire::{Answer, Body, FOR_PATCH, Question};

/// A folder into which processes write their events, and by which they ask.
///
/// It goes when this is dropped.
pub struct Server {
    folder: TempDir,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.folder.path()).finish()
    }
}

impl Server {
    /// Makes the folder and answers from now on, in a thread of its own.
    ///
    /// # Errors
    ///
    /// If the folder or the socket cannot be made.
    pub fn start() -> io::Result<Server> {
        let mine = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix("ccscope-")
            .permissions(mine)
            .tempdir()?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        bind(&socket, &SocketAddrUnix::new(folder.path().join("0"))?)?;
        listen(&socket, 1024)?;
        // Ends with this process: a program may leave others behind that still ask.
        thread::Builder::new()
            .name("answers".to_owned())
            .spawn(move || serve(&socket))?;
        Ok(Server { folder })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the processes had to say, each line once.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        lines_of(&self.folder().join("said"))
    }

    /// Files of events, those of the process `first` first, then the eldest.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn files(&self, first: u32) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in self.folder().read_dir()? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "events") {
                let made = path
                    .metadata()?
                    .created()
                    .or_else(|_| path.metadata()?.modified())?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_first = name.starts_with(&format!("{first}."));
                files.push((!is_first, made, path));
            }
        }
        files.sort();
        Ok(files.into_iter().map(|(_, _, path)| path).collect())
    }
}

fn serve(socket: &OwnedFd) {
    let mut files = Files::default();
    loop {
        match accept_with(socket, SocketFlags::CLOEXEC) {
            // Who hangs up gets no answer.
            Ok(connection) => drop(talk(&connection, &mut files)),
            // There are too many descriptors.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn talk(connection: &OwnedFd, files: &mut Files) -> io::Result<()> {
    let peer = socket_peercred(connection)?;
    if peer.uid != geteuid() {
        return Ok(());
    }
    // Others wait behind one that says nothing.
    set_socket_timeout(connection, Timeout::Recv, Some(Duration::from_secs(1)))?;
    let mut bytes = [0_u8; size_of::<Question>()];
    let (got, _) = recv(connection, &mut bytes, RecvFlags::empty())?;
    if got == bytes.len() {
        let question = question(&bytes);
        let answer = match question.asks {
            FOR_PATCH => {
                let pid = peer.pid.as_raw_nonzero().get();
                bytes_of_body(&patch(&question, pid, files))
            }
            _ => bytes_of(&answer(&question)),
        };
        send(connection, &answer, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// The body for an instruction that may be patched.
fn patch(question: &Question, pid: i32, files: &mut Files) -> Body {
    let len = answer(question).len.into();
    if files.allow(pid, question, len) {
        body(question)
    } else {
        REFUSED
    }
}

fn question(bytes: &[u8; size_of::<Question>()]) -> Question {
    let word = |at: usize| {
        let word = bytes[at * 8..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(word)
    };
    Question {
        asks: word(0),
        ip: word(1),
        thunk: word(2),
        delta: word(3).cast_signed(),
        len: word(4),
        bytes: bytes[40..].try_into().expect("sixteen bytes are left"),
    }
}

fn bytes_of_body(body: &Body) -> Vec<u8> {
    let mut bytes = vec![body.len, body.run, body.recorder, body.scratch];
    bytes.extend(body.zero);
    bytes.extend(body.code);
    bytes
}

fn bytes_of(answer: &Answer) -> Vec<u8> {
    let mut bytes = vec![
        answer.plan,
        answer.len,
        answer.code_len,
        answer.accesses_len,
    ];
    for access in answer.accesses {
        bytes.extend([access.kind, access.operand]);
        bytes.extend(access.size.to_le_bytes());
    }
    bytes.extend([answer.string, answer.element]);
    bytes.extend([answer.displacement, answer.is_relative]);
    bytes.extend(answer.code);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FOR_THUNK;

    #[test]
    fn what_is_sent_has_the_size_that_is_waited_for() {
        let question = Question {
            asks: FOR_THUNK,
            ip: 1,
            thunk: 2,
            delta: -3,
            len: 1,
            bytes: [0x90; 16],
        };
        assert_eq!(bytes_of(&answer(&question)).len(), size_of::<Answer>());
        assert_eq!(bytes_of_body(&body(&question)).len(), size_of::<Body>());
    }
}
