use super::*;

fn read(content: &str) -> Result<Profile, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    open(file.path())
}

/// Two frames at one address, an allocation of 16 bytes twice and one of 32, of which the first is
/// temporary.
const HEAPTRACK: &str = "v 10400 3
X ./demo -n
I 1000 10
# a comment
s 9 /bin/demo
s 6 inner
s 5 main
s 4 a.cc
i 1234 1 2 4 7 3 4 9
i 99
t 1 0
t 2 1
a 10 1
a 20 2
c 2
+ 0
- 0
R 3
c 5
+ 0
+ 1
c 9
- 0
";

#[test]
fn heaptrack_files_become_profiles() {
    let profile = read(HEAPTRACK).unwrap();
    let total = &profile.total;
    let counts = [
        total.allocations,
        total.frees,
        total.requested,
        total.end_usable,
    ];
    assert_eq!(counts, [3, 2, 64, 32]);
    assert_eq!(
        [total.peak_usable, total.peak_chunks, total.peak_time],
        [48, 2, 4]
    );
    assert_eq!(profile.run.command, ["./demo", "-n"]);
    assert_eq!(profile.resident[0].bytes, 3 * 4096);
    let [first, second] = &profile.sites[..] else {
        panic!("{:?}", profile.sites)
    };
    assert_eq!(
        [first.allocations, first.temporary, first.lifetime],
        [2, 1, 3]
    );
    assert_eq!([first.at_peak_usable, second.at_peak_usable], [16, 32]);
    let names = |site: &crate::profile::Site| {
        let frames = site.stack.iter().map(|&it| &profile.frames[it as usize]);
        frames.map(|it| it.function.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(first), ["inner", "main"]);
    assert_eq!(names(second), ["+0x99", "inner", "main"]);
    let inner = &profile.frames[first.stack[0] as usize];
    assert!(
        inner.inlined && inner.line == 7 && inner.module == "demo",
        "{inner:?}"
    );
    let curve: Vec<_> = profile
        .curve
        .iter()
        .map(|it| (it.ns / 1_000_000, it.usable))
        .collect();
    assert_eq!(curve, [(2, 0), (5, 48), (9, 32)]);
}

const DHAT: &str = r#"{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,
"bkacc":false,"tu":"instrs","Mtu":"Minstr","tuth":500,"cmd":"./demo","pid":7,"te":100,"tg":50,
"pps":[{"tb":64,"tbk":4,"tl":90,"mb":48,"mbk":3,"gb":32,"gbk":2,"eb":16,"ebk":1,"fs":[1,2,3]}],
"ftbl":["[root]","0x48417B4: malloc (in /usr/libexec/vgpreload.so)","0x10: f(int) (a.c:12)",
"0x20: ??? (in /bin/demo)"]}"#;

#[test]
fn dhat_files_become_profiles() {
    let profile = read(DHAT).unwrap();
    let total = &profile.total;
    assert_eq!(
        [total.allocations, total.requested, total.peak_usable],
        [4, 64, 32]
    );
    let site = &profile.sites[0];
    assert_eq!(
        [site.lifetime, site.end_chunks, site.peak_chunks],
        [90, 1, 3]
    );
    let place = &profile.frames[site.place.unwrap() as usize];
    assert_eq!(
        (&*place.function, &*place.file, place.line),
        ("f(int)", "a.c", 12)
    );
    let last = &profile.frames[site.stack[2] as usize];
    assert_eq!((&*last.function, &*last.module), ("demo+0x20", "demo"));
    // What we write of it, we read.
    let mut out = Vec::new();
    crate::exports::dhat::write(&profile, &mut out).unwrap();
    let again = read(&String::from_utf8(out).unwrap()).unwrap();
    assert_eq!(again.total, profile.total);
}

#[test]
fn profiles_made_from_files_of_others_can_be_saved() {
    for content in [HEAPTRACK, DHAT] {
        let profile = read(content).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        profile.save(file.path()).unwrap();
        assert_eq!(open(file.path()).unwrap(), profile);
    }
}

#[test]
fn damaged_files_are_refused_in_a_line() {
    let heaptrack = |from: &str, to: &str| HEAPTRACK.replacen(from, to, 1);
    let dhat = |from: &str, to: &str| DHAT.replacen(from, to, 1);
    for (content, why) in [
        (heaptrack("v 10400 3", "v 10400 4"), "newer version"),
        (heaptrack("+ 1", "+ 7"), "allocation is not there"),
        (heaptrack("t 2 1", "t 9 1"), "not there"),
        (heaptrack("t 1 0", "t 1 1"), "not there"),
        (heaptrack("i 99", "i xyz"), "number is missing"),
        (heaptrack("1234 1 2", "1234 1 6"), "name is not there"),
        (dhat("\"fs\":[1,2,3]", "\"fs\":[9]"), "not there"),
        (
            dhat("\"dhatFileVersion\":2", "\"dhatFileVersion\":3"),
            "version 3",
        ),
        (dhat("\"mode\":\"heap\"", "\"mode\":\"copy\""), "mode"),
        (dhat("\"tg\":50", "\"tg\":500"), "peak is after its end"),
        (dhat("\"te\":100", "\"te\":-1"), "no DHAT file"),
        ("{".to_owned(), "no DHAT file"),
        ("nothing".to_owned(), "is no profile"),
    ] {
        let error = read(&content).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

/// A small file of many stacks that share a long one.
#[test]
fn memory_is_bounded_by_the_length() {
    let mut content = "v 1 3\ns 1 m\ni 1 1\nt 1 0\n".to_owned();
    for parent in 1..20_000 {
        content.push_str(&format!("t 1 {parent:x}\n"));
    }
    for trace in 1..20_000 {
        content.push_str(&format!("a 1 {trace:x}\n"));
    }
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(content.as_bytes()).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), packer.finish().unwrap()).unwrap();
    let error = open(file.path()).unwrap_err().to_string();
    assert!(
        error.contains("more memory than its length justifies"),
        "{error}"
    );
}
