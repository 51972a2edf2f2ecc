//! Reads recorded windows.

use super::{Renumbered, Source, damaged, entry};
use crate::Error;
use crate::capture_format::{self, FIRST_WINDOW, Header, WINDOW, WINDOW_ROOM, accesses, layout};
use crate::profile::{Access, Window};

/// The windows in order of time, and the number of their accesses.
pub(super) fn read(
    capture: Source<'_>,
    header: &Header,
    site_of: &Renumbered,
    thread_of: &Renumbered,
) -> Result<(Vec<Window>, u64), Error> {
    let (mut windows, mut recorded) = (Vec::new(), 0);
    for index in 0..header.windows {
        let place = layout::WINDOWS + index * WINDOW_ROOM;
        let raw: capture_format::Window = entry(capture, place, 0)?;
        if raw.bytes == 0 {
            continue;
        }
        let room = WINDOW_ROOM - size_of::<capture_format::Window>() as u64;
        let bytes = Some(raw.bytes).filter(|&bytes| bytes <= room);
        let bytes = bytes.and_then(|bytes| {
            let start = usize::try_from(place + WINDOW_ROOM - room).ok()?;
            capture
                .bytes
                .get(start..start + usize::try_from(bytes).ok()?)
        });
        let mut bytes =
            bytes.ok_or_else(|| damaged(&format!("a window claims {} bytes", raw.bytes)))?;
        let most = if raw.burst == 0 { FIRST_WINDOW } else { WINDOW };
        let (mut coder, mut accesses) = (accesses::Coder::default(), Vec::new());
        while !bytes.is_empty() {
            if accesses.len() as u64 == most {
                return Err(damaged("a window has more accesses than it may"));
            }
            let access = coder.take(&mut bytes);
            let access = access.ok_or_else(|| damaged("a window ends within an access"))?;
            accesses.push(read_access(&access, site_of));
        }
        recorded += accesses.len() as u64;
        windows.push(Window {
            time: raw.time,
            from_start: raw.burst == 0,
            thread: thread_of.get(&raw.thread).copied().unwrap_or(u32::MAX),
            accesses,
        });
    }
    windows.sort_by_key(|window| window.time);
    Ok((windows, recorded))
}

fn read_access(raw: &accesses::Access, site_of: &Renumbered) -> Access {
    let site_of = |site| site_of.get(&site).copied().unwrap_or(u32::MAX);
    Access {
        address: raw.address,
        size: raw.size,
        write: raw.write,
        site: site_of(raw.site),
        offset: raw.offset,
        pointer: raw.pointer,
        target: site_of(raw.target),
    }
}
