//! Options in a variable of the environment: names and values, with one byte between two of them.

/// Each option of a text: its name, and what stands behind the `=`.
pub fn each(text: &[u8], separator: u8) -> impl Iterator<Item = (&[u8], &[u8])> {
    let parts = text.split(move |&byte| byte == separator);
    parts.filter(|part| !part.is_empty()).map(|part| {
        let end = part.iter().position(|&byte| byte == b'=');
        let end = end.unwrap_or(part.len());
        (&part[..end], part.get(end + 1..).unwrap_or_default())
    })
}

/// A number in base 10, modulo 2^64; bytes that are no digits do not count.
pub fn decimal(text: &[u8]) -> u64 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum: u64, byte| {
        sum.wrapping_mul(10).wrapping_add((byte - b'0').into())
    })
}

/// A number in base 16.
pub fn hex(text: &[u8]) -> u64 {
    text.iter().fold(0, |sum, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => 0,
        };
        sum << 4 | u64::from(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_names_and_values() {
        let all: Vec<_> = each(b"a=1,full=,,b,c=x=y", b',').collect();
        let expected: [(&[u8], &[u8]); 4] =
            [(b"a", b"1"), (b"full", b""), (b"b", b""), (b"c", b"x=y")];
        assert_eq!(all, expected);
        assert_eq!(each(b"", b',').count(), 0);
    }

    #[test]
    fn numbers_are_read_in_both_bases() {
        assert_eq!(
            (decimal(b"1000"), decimal(b""), decimal(b"9x9")),
            (1000, 0, 99)
        );
        assert_eq!((hex(b"1f"), hex(b"")), (0x1f, 0));
        assert_eq!(decimal(b"99999999999999999999"), 7_766_279_631_452_241_919);
        assert_eq!(decimal(b"18446744073709551619"), 3);
    }
}
