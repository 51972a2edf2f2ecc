//! Questions to the tool, of how an instruction is carried out.

use super::folder::Path;
use super::sys::{AF_UNIX, UnixAddress};
use super::wire::Question;
use super::{events, sys};

/// Asks the tool. `A` is what the question asks for; false without an answer.
pub(crate) fn ask<A>(question: &Question, answer: &mut A) -> bool {
    const SEQPACKET_CLOSED_BY_EXEC: u64 = 5 | 0o2_000_000;
    let mut name = Path::in_folder();
    name.number(0);
    let address = UnixAddress {
        family: AF_UNIX,
        path: name.for_socket(),
    };
    let address_len = size_of::<UnixAddress>() as u64;
    let size = size_of::<A>() as u64;
    let place = core::ptr::from_mut(answer).expose_provenance() as u64;
    // SAFETY: the kernel reads and writes what is ours, and any bytes are an answer.
    let got = unsafe {
        let words = [AF_UNIX.into(), SEQPACKET_CLOSED_BY_EXEC, 0, 0, 0, 0];
        let fd = sys::call(sys::SOCKET, words).cast_unsigned();
        let words = [fd, (&raw const address) as u64, address_len, 0, 0, 0];
        let mut got = sys::call(sys::CONNECT, words);
        if got == 0 {
            let asked = core::ptr::from_ref(question) as u64;
            let words = [fd, asked, size_of::<Question>() as u64, 0, 0, 0];
            sys::call(sys::WRITE, words);
            got = sys::call(sys::READ, [fd, place, size, 0, 0, 0]);
        }
        sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
        got
    };
    const REFUSED: i64 = -111;
    const IS_ABSENT: i64 = -2;
    if got == REFUSED || got == IS_ABSENT {
        // The tool is gone: nobody reads what is written.
        events::end();
    }
    got == size.cast_signed()
}
