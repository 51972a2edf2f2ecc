//! Caches as sets, blocks and ways, and sizes of pages.

use std::fmt;

/// Most ways: those of a fully associative cache of 1 MiB. Each access searches all of them.
const WAYS_MAX: u64 = 1 << 14;
/// No cache has larger ways.
const WAY_BYTES_MAX: u64 = 1 << 40;

/// A set-associative cache: `C = (c, b, a)` in the thesis.
///
/// Sets and block size are powers of two; a way has at most 2^40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeometry {
    sets: u64,
    block_bytes: u64,
    associativity: u64,
}

impl CacheGeometry {
    /// A cache of `sets` sets of `associativity` blocks of `block_bytes` bytes.
    ///
    /// # Errors
    /// [`GeometryError`] when sets or block size are no powers of two, the block is smaller than 8
    /// bytes, there is no way or more than 16384, or a way has more than 2^40 bytes.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::CacheGeometry;
    ///
    /// let fully_associative = CacheGeometry::new(1, 64, 16384)?;
    /// assert_eq!(fully_associative.blocks() * 64, 1 << 20);
    /// assert!(CacheGeometry::new(1, 64, 65536).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(
        sets: u64,
        block_bytes: u64,
        associativity: u64,
    ) -> Result<CacheGeometry, GeometryError> {
        let geometry = CacheGeometry {
            sets,
            block_bytes,
            associativity,
        };
        let way_fits = match sets.checked_mul(block_bytes) {
            Some(bytes) => bytes <= WAY_BYTES_MAX,
            None => false,
        };
        if sets.is_power_of_two()
            && block_bytes.is_power_of_two()
            && block_bytes >= 8
            && associativity >= 1
            && associativity <= WAYS_MAX
            && way_fits
        {
            Ok(geometry)
        } else {
            Err(GeometryError(geometry))
        }
    }

    /// Number of sets, c.
    pub const fn sets(self) -> u64 {
        self.sets
    }

    /// Block size in bytes, b.
    pub const fn block_bytes(self) -> u64 {
        self.block_bytes
    }

    /// Blocks in a set, a.
    pub const fn associativity(self) -> u64 {
        self.associativity
    }

    /// Blocks that the cache holds.
    pub const fn blocks(self) -> u64 {
        self.sets * self.associativity
    }

    /// Bytes of one way: the distance of addresses that fall into the same set.
    pub const fn way_bytes(self) -> u64 {
        self.sets * self.block_bytes
    }
}

/// The error for sets, blocks and ways that no cache can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError(CacheGeometry);

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sets, ways, bytes) = (self.0.sets, self.0.associativity, self.0.block_bytes);
        write!(
            f,
            "no cache has {sets} sets of {ways} blocks of {bytes} bytes"
        )?;
        if ways > WAYS_MAX {
            write!(f, ", more than {WAYS_MAX} ways")?;
        }
        Ok(())
    }
}

impl std::error::Error for GeometryError {}

/// Size of the pages that the structure lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
pub enum PageSize {
    /// 4 KiB, what `malloc` gives unless told otherwise.
    #[default]
    #[cfg_attr(feature = "json", serde(rename = "4k"))]
    Small4K,
    /// 2 MiB, what `madvise(MADV_HUGEPAGE)` asks for.
    #[cfg_attr(feature = "json", serde(rename = "2m"))]
    Huge2M,
}

impl PageSize {
    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            PageSize::Small4K => 4 << 10,
            PageSize::Huge2M => 2 << 20,
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageSize::Small4K => "4k",
            PageSize::Huge2M => "2m",
        })
    }
}
