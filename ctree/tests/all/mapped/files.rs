//! What the file system can do: odd kinds of files, full disks, pages that cannot be read, files
//! replaced while they are open.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ctree::{MappedCTreeMap, OpenError, WriteError};

use super::{Folder, open_all};

/// Whether the kernel brings pages in on demand, and says so when it cannot: Linux from 5.14 on.
#[cfg(all(target_os = "linux", not(miri)))]
fn kernel_populates() -> bool {
    #[repr(align(65536))]
    struct Pages([u8; 65536]);

    let pages = Box::new(Pages([1; 65536]));
    let first = pages.0.as_ptr().cast_mut().cast();
    // SAFETY: whole pages, which this advice does not change.
    let result = unsafe { libc::madvise(first, pages.0.len(), libc::MADV_POPULATE_READ) };
    result == 0
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn warm_reports_pages_that_cannot_be_read() {
    if !kernel_populates() {
        return;
    }
    let folder = Folder::new();
    let path = folder.join("map");
    MappedCTreeMap::<u64, u64>::write(&path, (0..100_000).map(|n| (n, n))).unwrap();
    // SAFETY: nothing else uses the file. It is shortened below, against the promise, as a disk
    // that breaks would do; none of its bytes is read after that.
    let map = unsafe { MappedCTreeMap::<u64, u64>::open(&path) }.unwrap();
    map.warm().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    let error = map.warm().unwrap_err();
    assert!(error.to_string().contains("SIGBUS"), "{error}");
}

#[cfg(unix)]
#[test]
fn special_files_are_refused_at_once() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let folder = Folder::new();
    let (pipe, socket, link, dangling) = (
        folder.join("pipe"),
        folder.join("socket"),
        folder.join("link"),
        folder.join("dangling"),
    );
    let pipe_name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(pipe_name.as_ptr(), 0o600) }, 0);
    let _listener = UnixListener::bind(&socket).unwrap();
    symlink("map", &link).unwrap();
    symlink("nothing", &dangling).unwrap();

    let write = |path: &Path| MappedCTreeMap::<u64, u64>::write(path, [(1, 1)]);
    let devices = ["/dev/null", "/dev/zero"].map(Path::new);
    for path in [folder.0.as_path(), &pipe, &socket, devices[0], devices[1]] {
        let [mapped, read] = open_all::<u64, u64>(path);
        let immutable = MappedCTreeMap::<u64, u64>::open_immutable(path);
        for result in [mapped, read, immutable] {
            let is_refused = matches!(result, Err(OpenError::NotAFile));
            assert!(is_refused, "{}", path.display());
        }
        let is_refused = matches!(write(path), Err(WriteError::NotAFile));
        assert!(is_refused, "{}", path.display());
    }
    for path in [
        folder.join("nothing"),
        folder.join("nothing/at/all"),
        dangling.clone(),
    ] {
        for result in open_all::<u64, u64>(&path) {
            let Err(OpenError::Io(error)) = result else {
                panic!("{result:?}")
            };
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
    let before = folder.names();
    for path in [&dangling, &folder.join("nothing/map")] {
        assert!(matches!(write(path), Err(WriteError::Io(_))));
    }
    for path in ["/", "..", ""] {
        assert!(write(Path::new(path)).is_err());
    }
    assert_eq!(folder.names(), before);

    // A link is followed, for reading and for writing.
    for value in [1, 2] {
        let path = if value == 1 {
            folder.join("map")
        } else {
            link.clone()
        };
        MappedCTreeMap::<u64, u64>::write(&path, [(1, value)]).unwrap();
        for map in open_all::<u64, u64>(&link) {
            assert_eq!(map.unwrap().get(&1), Some(value));
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    let path = folder.join("map");
    MappedCTreeMap::<u64, u64>::write(&path, [(1, 1)]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    MappedCTreeMap::<u64, u64>::write(&path, [(1, 2)]).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

/// A file that the kernel protects can be mapped without a promise.
#[cfg(target_os = "linux")]
#[test]
fn sealed_memory_is_immutable() {
    use std::os::fd::{AsRawFd, FromRawFd};

    // SAFETY: the name ends with a zero byte.
    let descriptor = unsafe {
        libc::memfd_create(
            c"ctree".as_ptr(),
            libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
        )
    };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor has just been opened, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(&MappedCTreeMap::<u64, u64>::to_bytes([(1, 10), (2, 20)]).unwrap())
        .unwrap();
    let path = format!("/proc/self/fd/{descriptor}");
    let open = || MappedCTreeMap::<u64, u64>::open_immutable(&path);
    assert!(matches!(open(), Err(OpenError::NotImmutable)));
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: seals a file of ours.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    assert_eq!(sealed, 0);
    let map = open().unwrap();
    assert_eq!((map.get(&2), map.verify()), (Some(20), Ok(())));
    assert!(map.memory_usage() < map.file_bytes());
}

/// A writer that fails after `left` bytes.
struct Failing<W> {
    out: W,
    left: usize,
}

impl<W: Write> Write for Failing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("the disk is full"));
        }
        let now = bytes.len().min(self.left);
        self.left -= now;
        self.out.write(&bytes[..now])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Seek> Seek for Failing<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.out.seek(to)
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file_that_opens() {
    let entries = || (0..500u64).map(|n| (n, "x".repeat(40)));
    let whole = MappedCTreeMap::<u64, str>::to_bytes(entries()).unwrap();
    let written = whole.len() + 4096;
    for left in (0..written).step_by(if cfg!(miri) { 9001 } else { 97 }) {
        let mut out = Failing {
            out: Cursor::new(Vec::new()),
            left,
        };
        let error = MappedCTreeMap::<u64, str>::write_to(&mut out, entries()).unwrap_err();
        assert!(matches!(&error, WriteError::Io(error) if error.to_string() == "the disk is full"));
        let bytes = out.out.into_inner();
        // Of the header that comes last, most is zeros, which were there before.
        let whole_but_zeros = left > written - 4096 && bytes == whole;
        let refused = bytes.len() < 4096 || MappedCTreeMap::<u64, str>::from_bytes(&bytes).is_err();
        assert!(refused != whole_but_zeros, "{left} bytes");
    }
    let mut out = Failing {
        out: Cursor::new(Vec::new()),
        left: written,
    };
    assert_eq!(
        MappedCTreeMap::<u64, str>::write_to(&mut out, entries()).unwrap(),
        500
    );
    assert!(out.out.into_inner() == whole);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new();
    let path = folder.join("map");
    let only = BTreeSet::from(["map".to_string()]);
    MappedCTreeMap::<u64, str>::write(&path, [(1, "old")]).unwrap();
    let old = fs::read(&path).unwrap();
    let many = if cfg!(miri) { 100 } else { 20_000 };
    for stop in [0, 1, 15, 16, 17, 300, many] {
        let panicking = (0..).map(|n: u64| {
            assert!(n < stop, "the iterator ends here");
            (n, "x".repeat(2000))
        });
        let write = || MappedCTreeMap::<u64, str>::write(&path, panicking);
        assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
        assert_eq!(folder.names(), only);
        assert!(fs::read(&path).unwrap() == old);

        let unordered = (0..=stop).map(|n| (if n == stop { 0 } else { n + 1 }, "new"));
        let result = MappedCTreeMap::<u64, str>::write(&path, unordered);
        if stop == 0 {
            assert_eq!(result.unwrap(), 1);
            MappedCTreeMap::<u64, str>::write(&path, [(1, "old")]).unwrap();
        } else {
            assert!(matches!(result, Err(WriteError::Order { index }) if index as u64 == stop));
        }
        assert_eq!(folder.names(), only);
        assert!(fs::read(&path).unwrap() == old);
    }
    assert!(matches!(
        MappedCTreeMap::<u64, str>::write(&path, [(1, "a"), (1, "b")]),
        Err(WriteError::Order { index: 1 })
    ));
}

#[test]
fn a_replaced_file_lives_as_long_as_it_is_open() {
    let folder = Folder::new();
    let path = folder.join("map");
    MappedCTreeMap::<u64, str>::write(&path, [(1, "old")]).unwrap();
    // SAFETY: the file is replaced, but not changed.
    let old = unsafe { MappedCTreeMap::<u64, str>::open(&path) }.unwrap();
    MappedCTreeMap::<u64, str>::write(&path, [(1, "new")]).unwrap();
    // SAFETY: the file is removed, but not changed.
    let new = unsafe { MappedCTreeMap::<u64, str>::open(&path) }.unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!((old.get(&1), new.get(&1)), (Some("old"), Some("new")));
    assert_eq!((old.verify(), new.verify()), (Ok(()), Ok(())));
}
