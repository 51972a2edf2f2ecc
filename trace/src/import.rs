//! Traces of other tools: valgrind's lackey, and text with one access a line as tools of DynamoRIO
//! write it.

use std::io::{self, BufRead};

use super::reader::Event;
use super::wire::{LOAD, STORE};

/// Calls `each` with the accesses of a text; how many lines were none.
///
/// Lines of lackey are ` L ADDRESS,SIZE`, ` S …` and ` M …`, a load and a store; fetches of
/// instructions give the accesses behind them their address. Lines of DynamoRIO's samples are
/// `IP: r SIZE ADDRESS`, `IP,r,SIZE,ADDRESS` or with `R`, `W`, `w`.
///
/// # Errors
///
/// Those of `text` and `each`.
pub fn read(text: impl BufRead, mut each: impl FnMut(&Event) -> io::Result<()>) -> io::Result<u64> {
    let (mut order, mut ip, mut others) = (0, 0, 0);
    for line in text.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match access(&line) {
            Some(Line::Fetch(address)) => ip = address,
            Some(Line::Access {
                kinds,
                ip: own,
                address,
                len,
            }) => {
                for &kind in kinds {
                    let ip = own.unwrap_or(ip);
                    each(&Event {
                        order,
                        kind,
                        ip,
                        address,
                        len,
                        ..Event::default()
                    })?;
                    order += 1;
                }
            }
            None => others += u64::from(!line.trim().is_empty()),
        }
    }
    Ok(others)
}

enum Line {
    Fetch(u64),
    Access {
        kinds: &'static [u8],
        ip: Option<u64>,
        address: u64,
        len: u64,
    },
}

fn access(line: &str) -> Option<Line> {
    lackey(line).or_else(|| dynamorio(line))
}

fn lackey(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let (kind, rest) = (words.next()?, words.next()?);
    let (address, len) = rest.split_once(',')?;
    let address = hex(address)?;
    let len = len.parse().ok()?;
    let kinds: &[u8] = match kind {
        "I" => return Some(Line::Fetch(address)),
        "L" => &[LOAD],
        "S" => &[STORE],
        "M" => &[LOAD, STORE],
        _ => return None,
    };
    Some(Line::Access {
        kinds,
        ip: None,
        address,
        len,
    })
}

fn dynamorio(line: &str) -> Option<Line> {
    let mut words = line
        .split([',', ' ', ':', '\t'])
        .filter(|word| !word.is_empty());
    let ip = hex(words.next()?)?;
    let kinds: &[u8] = match words.next()? {
        "r" | "R" => &[LOAD],
        "w" | "W" => &[STORE],
        _ => return None,
    };
    let len = words.next()?.parse().ok()?;
    let address = hex(words.next()?)?;
    Some(Line::Access {
        kinds,
        ip: Some(ip),
        address,
        len,
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Vec<(u8, u64, u64, u64)>, u64) {
        let mut all = Vec::new();
        let others = read(text.as_bytes(), |event| {
            all.push((event.kind, event.ip, event.address, event.len));
            Ok(())
        });
        (all, others.unwrap())
    }

    #[test]
    fn lackey_is_read() {
        let text = "==7== Lackey\nI  04001090,3\n L 1ffe,8\n S 2000,4\nI  04001093,4\n M 10,2\n";
        let expected = vec![
            (LOAD, 0x0400_1090, 0x1ffe, 8),
            (STORE, 0x0400_1090, 0x2000, 4),
            (LOAD, 0x0400_1093, 0x10, 2),
            (STORE, 0x0400_1093, 0x10, 2),
        ];
        assert_eq!(read_all(text), (expected, 1));
    }

    #[test]
    fn lines_of_dynamorio_are_read() {
        let text = "Format: <pc>: r/w <size> <address>\n0x7f01: r  8 0x5000\n0x7f05,w,4,0x6000\n\n";
        let expected = vec![(LOAD, 0x7f01, 0x5000, 8), (STORE, 0x7f05, 0x6000, 4)];
        assert_eq!(read_all(text), (expected, 1));
    }
}
