//! The pages behind boxes, so that the links lie together.

use super::before::serve;

pub fn split(size: usize) -> u64 {
    serve(size, Box::new, |page| page[7])
}
