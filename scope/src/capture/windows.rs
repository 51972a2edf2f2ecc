//! Joins the parts of recorded bursts.

use std::collections::HashMap;

use super::{Renumbered, damaged, entry};
use crate::Error;
use crate::format::{self, Header, WINDOW_LEN, layout};
use crate::profile::{Access, Window};

/// The bursts in order of time, and the number of their accesses.
pub(super) fn read(
    capture: &[u8],
    header: &Header,
    site_of: &Renumbered,
    thread_of: &Renumbered,
) -> Result<(Vec<Window>, u64), Error> {
    let mut windows: Vec<Window> = Vec::new();
    let mut of_burst: HashMap<(u32, u64), usize> = HashMap::new();
    let mut recorded = 0;
    for index in 0..header.windows {
        let part: format::Window = entry(capture, layout::WINDOWS, index)?;
        let len = part.len as usize;
        if len > WINDOW_LEN {
            return Err(damaged(&format!("a window claims {len} accesses")));
        }
        if len == 0 {
            continue;
        }
        recorded += len as u64;
        let at = *of_burst
            .entry((part.thread, part.burst))
            .or_insert(windows.len());
        if at == windows.len() {
            let thread = thread_of.get(&part.thread).copied().unwrap_or(u32::MAX);
            windows.push(Window {
                time: part.time,
                from_start: part.burst == 0,
                thread,
                accesses: Vec::new(),
            });
        }
        let accesses = part.accesses[..len]
            .iter()
            .map(|access| read_access(access, site_of));
        windows[at].accesses.extend(accesses);
    }
    windows.sort_by_key(|window| window.time);
    Ok((windows, recorded))
}

fn read_access(raw: &format::Access, site_of: &Renumbered) -> Access {
    let site_of = |site| site_of.get(&site).copied().unwrap_or(u32::MAX);
    Access {
        address: raw.address & ((1 << 48) - 1),
        size: (raw.address >> 48 & 0xff) as u8,
        write: raw.address >> 56 & 1 != 0,
        site: site_of(raw.site),
        offset: raw.offset,
        pointer: raw.pointer,
        target: site_of(raw.target),
    }
}
