//! The bytes of a file: a mapping, or a copy in memory. Only this module knows the operating
//! system.
//!
//! A path may name anything. Its metadata is checked before it is opened, since opening alone can
//! rewind a tape; it is opened without blocking, since a pipe would wait for a writer; and the open
//! file is checked again, since the name may have changed.

use std::fs::{self, File};
use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions};

use super::error::OpenError;
use super::header::Page;
use super::layout::PAGE_BYTES;

/// Linux's number, on all processors, for memory that cannot be accessed.
#[cfg(target_os = "linux")]
const EFAULT: i32 = 14;

/// A regular file, opened for reading, and its length.
pub(super) struct Opened {
    file: File,
    /// Length when it was opened.
    pub(super) file_bytes: u64,
}

/// All bytes of a file.
#[derive(Debug)]
pub(super) struct Source {
    mmap: Mmap,
    /// Whether they are a copy in this process's memory.
    in_memory: bool,
}

impl Opened {
    /// Opens the regular file that `path` names, symbolic links followed.
    pub(super) fn open(path: &Path) -> Result<Opened, OpenError> {
        if !fs::metadata(path)?.is_file() {
            return Err(OpenError::NotAFile);
        }
        let mut options = File::options();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NONBLOCK | libc::O_NOCTTY,
        );
        let file = options.open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(OpenError::NotAFile);
        }
        Ok(Opened {
            file,
            file_bytes: metadata.len(),
        })
    }

    /// Reads the first page. Afterwards the file stands behind it.
    pub(super) fn header(&mut self) -> Result<Page, OpenError> {
        let file_bytes = self.file_bytes;
        if file_bytes < PAGE_BYTES as u64 {
            return Err(OpenError::TooShort { file_bytes });
        }
        let mut page = [0; PAGE_BYTES];
        self.file.read_exact(&mut page)?;
        Ok(page)
    }

    /// # Safety
    /// Nothing changes or shortens the file while the mapping lives; it has `bytes` bytes or more.
    pub(super) unsafe fn map(self, bytes: usize) -> Result<Source, OpenError> {
        // SAFETY: the caller promises that the file has so many bytes, and that nothing changes or
        // shortens it while the mapping lives.
        let mmap = unsafe { MmapOptions::new().len(bytes).map(&self.file) }?;
        Ok(Source {
            mmap,
            in_memory: false,
        })
    }

    /// Maps the first `bytes` bytes if the kernel guarantees that they stay what they are.
    pub(super) fn map_immutable(self, bytes: usize) -> Result<Source, OpenError> {
        if !kernel_keeps(&self.file) {
            return Err(OpenError::NotImmutable);
        }
        match MmapOptions::new().len(bytes).map_if_safe(&self.file) {
            Ok(mmap) => Ok(Source {
                mmap,
                in_memory: false,
            }),
            Err(error) if error.map_failed() => Err(OpenError::Io(error.into())),
            Err(_) => Err(OpenError::NotImmutable),
        }
    }

    pub(super) fn read(mut self, header: &Page, bytes: usize) -> Result<Source, OpenError> {
        let mut memory = anonymous(bytes)?;
        let (first, rest) = memory.split_at_mut(PAGE_BYTES);
        first.copy_from_slice(header);
        self.file.read_exact(rest)?;
        Source::from_memory(memory)
    }
}

/// Whether the kernel itself answers for the file: what a file system in user space says of
/// fs-verity proves nothing.
#[cfg(target_os = "linux")]
fn kernel_keeps(file: &File) -> bool {
    /// Memory files (tmpfs, hugetlbfs), and file systems with fs-verity (ext4, F2FS, Btrfs): the
    /// numbers of statfs(2), the same on all processors.
    const FILE_SYSTEMS: [u32; 5] = [0x0102_1994, 0x9584_58f6, 0xef53, 0xf2f5_2010, 0x9123_683e];
    let mut found = core::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open; the call fills `found` if it succeeds.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0;
    if failed {
        return false;
    }
    // SAFETY: filled just now.
    let number = unsafe { found.assume_init() }.f_type.to_le_bytes();
    let mut known = FILE_SYSTEMS.iter();
    // Its upper half, where it has 64 bits, repeats the sign.
    known.any(|system| number.starts_with(&system.to_le_bytes()))
}

/// Elsewhere nothing is known to be kept; mapping refuses, too.
#[cfg(not(target_os = "linux"))]
fn kernel_keeps(_file: &File) -> bool {
    false
}

/// A mapping of `bytes` bytes, on huge pages where possible. Unlike an allocation, it fails with an
/// error if the size that a file asks for is too large.
fn anonymous(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapOptions::new().len(bytes).map_anon()?;
    ccmalloc::advise_huge_pages(memory.as_ptr(), memory.len());
    Ok(memory)
}

impl Source {
    pub(super) fn copy_of(bytes: &[u8]) -> Result<Source, OpenError> {
        let mut memory = anonymous(bytes.len())?;
        memory.copy_from_slice(bytes);
        Source::from_memory(memory)
    }

    fn from_memory(memory: MmapMut) -> Result<Source, OpenError> {
        Ok(Source {
            mmap: memory.make_read_only()?,
            in_memory: true,
        })
    }

    /// All bytes; the first lies on a page boundary.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.mmap
    }

    /// Whether the bytes are a copy in this process's memory.
    pub(super) fn in_memory(&self) -> bool {
        self.in_memory
    }

    /// Has all pages of the file read, and mapped into this process.
    pub(super) fn warm(&self) -> io::Result<()> {
        if self.in_memory {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        match self.mmap.advise(memmap2::Advice::PopulateRead) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(EFAULT) => {
                let reason = "a page of the file cannot be read: touching it would raise SIGBUS";
                return Err(io::Error::other(reason));
            }
            // The kernel is older than 5.14, or a filter forbids it.
            Err(_) => {}
        }
        #[cfg(unix)]
        self.mmap.advise(memmap2::Advice::WillNeed)?;
        // That reads ahead, but maps no page before it is touched.
        let touched = self
            .mmap
            .iter()
            .step_by(PAGE_BYTES)
            .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        core::hint::black_box(touched);
        Ok(())
    }
}
