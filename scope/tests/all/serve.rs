//! `ccscope serve`: what collectors of profiles of Go programs get.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use ccscope::Profile;
use tempfile::TempDir;

use super::live::{LIVE, Running, site};
use super::pprof;
use super::pprof::schema::{File, Sample, ValueType};
use super::programs::{CCSCOPE, command, succeed, text};

fn types(file: &File) -> Vec<[&str; 2]> {
    let types = file.sample_type.iter().chain(&file.period_type);
    let pair = |it: &ValueType| [it.kind, it.unit].map(|it| pprof::string(file, it));
    types.map(pair).collect()
}

/// The values of sites whose innermost function is this one.
fn values<'f>(file: &'f File, function: &str) -> Vec<&'f [i64]> {
    let is_in = |sample: &&Sample| pprof::functions(file, sample)[0] == function;
    let samples = file.sample.iter().filter(is_in);
    samples.map(|sample| &*sample.value).collect()
}

/// A command whose socket, if it records, other tests do not find.
fn apart(folder: &Path) -> Command {
    let mut command = command(CCSCOPE);
    command.env("TMPDIR", folder).current_dir(folder);
    command
}

fn recorded(folder: &Path, words: &[&str]) -> Running {
    let mut tool = apart(folder);
    Running::new(tool.args(["run", "-q", "-o", "all.ccscope"]).args(words))
}

/// `ccscope serve`, once it listens, and where.
fn serve(folder: &Path, words: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let mut command = apart(folder);
    let command = command.arg("serve").args(words).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    let (_, address) = line.trim_end().split_once(" at ").expect(&line);
    (child, err, address.to_owned())
}

/// It ends by itself, with success and this line.
fn ends((mut child, mut err): (Child, BufReader<ChildStderr>), line: &str) {
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(rest.contains(line), "{rest}");
}

/// The head of the answer and its body.
fn ask(mut stream: impl Read + Write, request: &str) -> (String, Vec<u8>) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = text(&answer);
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    (head, body)
}

fn get(stream: impl Read + Write, path: &str) -> (String, Vec<u8>) {
    ask(stream, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

#[test]
fn collectors_get_what_is_alive_now() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let mut program = recorded(folder, &[LIVE.1.to_str().unwrap(), "exact"]);
    program.says("ready");
    program.go_on();
    program.says("first");
    succeed(apart(folder).args(["snapshot", "-o", "first"]));
    let first = Profile::open(folder.join("first")).unwrap();
    let (child, err, address) = serve(folder, &["--listen", "127.0.0.1:0"]);
    let address = address.strip_prefix("http://").unwrap();
    let (address, path) = address.split_at(address.find('/').unwrap());
    assert_eq!(path, "/debug/pprof/heap");
    let connect = || TcpStream::connect(address).unwrap();
    // One that says nothing does not keep others from their answers for ever.
    let idle = connect();
    let (head, body) = get(connect(), path);
    drop(idle);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/octet-stream\r\n"));
    let heap = pprof::open(&body);
    let [objects, space] = [["alloc_objects", "count"], ["alloc_space", "bytes"]];
    let [live_objects, live_space] = [["inuse_objects", "count"], ["inuse_space", "bytes"]];
    assert_eq!(
        types(&heap),
        [objects, space, live_objects, live_space, ["space", "bytes"]]
    );
    assert_eq!(
        pprof::string(&heap, heap.default_sample_type),
        "inuse_space"
    );
    assert!(heap.time_nanos > i64::try_from(first.run.started_ns).unwrap());
    let leaked = site(&first, 123);
    assert_eq!((leaked.allocations, leaked.end_chunks), (250, 250));
    let bytes = i64::try_from(leaked.end_usable).unwrap();
    assert!(bytes >= 250 * 123);
    assert!(values(&heap, "leak").contains(&&[250, bytes, 250, bytes][..]));
    // Of what is freed at once, nothing is alive.
    let freed = heap.sample.iter().map(|it| &*it.value);
    let mut freed = freed.filter(|it| it[0] == 500);
    assert_eq!(freed.next().unwrap()[2..], [0, 0]);
    // Later there is more, from another line.
    program.go_on();
    program.says("second");
    let (_, body) = get(connect(), "/debug/pprof/allocs?debug=0");
    let allocs = pprof::open(&body);
    assert_eq!(
        pprof::string(&allocs, allocs.default_sample_type),
        "alloc_space"
    );
    assert!(allocs.time_nanos > heap.time_nanos);
    let values = values(&allocs, "leak");
    let later = bytes / 5;
    assert!(values.contains(&&[50, later, 50, later][..]), "{values:?}");
    let statuses = [
        ("GET / HTTP/1.1\r\n\r\n", "200", "/debug/pprof/heap"),
        (
            "GET /debug/pprof/heap?seconds=5 HTTP/1.1\r\n\r\n",
            "400",
            "`seconds`",
        ),
        (
            "GET /debug/pprof/profile HTTP/1.1\r\n\r\n",
            "404",
            "no such path",
        ),
        (
            "POST /debug/pprof/heap HTTP/1.1\r\nContent-Length: 3\r\n\r\na=b",
            "405",
            "GET",
        ),
        ("what\r\n\r\n", "400", "no short request"),
    ];
    for (request, status, line) in statuses {
        let (head, body) = ask(connect(), request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(text(&body).contains(line) && head.contains("text/plain"));
    }
    program.go_on();
    program.ends();
    ends((child, err), "is no longer recorded");
}

#[test]
fn the_end_of_a_process_is_told_at_a_socket() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    // Of its own process the shell says the number, before it becomes the program.
    let program = "echo $$ > pid; exec \"$1\" exact";
    let script = "exec 3<&0; sh -c \"$0\" sh \"$1\" <&3 & wait; echo ended; read line";
    let words = ["sh", "-c", script, program, LIVE.1.to_str().unwrap()];
    let mut shell = recorded(folder, &words);
    shell.says("ready");
    let pid = fs::read_to_string(folder.join("pid")).unwrap();
    let pid = pid.trim_end();
    // One at which nobody listens any more is replaced.
    let path = folder.join("heap");
    drop(UnixListener::bind(&path).unwrap());
    let (child, err, _) = serve(folder, &[pid, "--listen", "unix:heap"]);
    let connect = || UnixStream::connect(&path).unwrap();
    let (head, body) = get(connect(), "/debug/pprof/heap");
    assert!(head.contains(" 200 "), "{head}");
    let heap = pprof::open(&body);
    let values = values(&heap, "leak");
    assert!(
        values.iter().any(|it| it[..1] == it[2..3] && it[0] == 1000),
        "{values:?}"
    );
    // One at which somebody listens is not.
    let other = apart(folder)
        .args(["serve", pid, "--listen", "unix:heap"])
        .output();
    refused(&other.unwrap(), 1, "cannot listen at heap");
    shell.go_on();
    shell.says("first");
    shell.go_on();
    shell.says("second");
    shell.go_on();
    shell.says("ended");
    let (head, body) = get(connect(), "/debug/pprof/heap");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert_eq!(text(&body), format!("process {pid} has ended\n"));
    shell.go_on();
    shell.ends();
    ends((child, err), "is no longer recorded");
    assert!(!path.exists());
}

fn refused(output: &Output, code: i32, why: &str) {
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert!(err.contains(why) && err.lines().count() == 1, "{err}");
}

#[test]
fn what_is_not_listened_at() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), "kept").unwrap();
    let serve = |words: &[&str]| apart(folder).arg("serve").args(words).output().unwrap();
    refused(&serve(&["--listen", "0.0.0.0:0"]), 2, "`--any-address`");
    refused(&serve(&["--listen", "6060"]), 2, "127.0.0.1:6060");
    refused(
        &serve(&["--listen", "unix:file"]),
        1,
        "file exists and is no socket",
    );
    assert_eq!(fs::read(folder.join("file")).unwrap(), b"kept");
    let words = ["1", "--any-address", "--listen", "0.0.0.0:0"];
    refused(&serve(&words), 1, "no ccscope of yours records process 1");
    refused(
        &serve(&["--listen", "unix:new"]),
        1,
        "no program is recorded",
    );
    assert!(!folder.join("new").exists());
}

#[test]
fn an_interrupted_server_leaves_no_socket() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let mut program = recorded(folder, &[LIVE.1.to_str().unwrap(), "exact"]);
    program.says("ready");
    let (mut child, _err, _) = serve(folder, &["--listen", "unix:heap"]);
    assert!(folder.join("heap").exists());
    succeed(Command::new("kill").args(["-TERM", &child.id().to_string()]));
    assert!(child.wait().unwrap().success());
    assert!(!folder.join("heap").exists());
    // The program has not noticed.
    for word in ["first", "second"] {
        program.go_on();
        program.says(word);
    }
    program.go_on();
    program.ends();
}
