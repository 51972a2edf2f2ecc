//! Names, places and types of allocations of programs that are compiled for the purpose.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ccscope::format::{self, layout};
use ccscope::profile::Profile;

use crate::building::{Capture, zero};

/// Runs a command that must succeed, and returns what it prints.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The profile of what `program` prints, and its sites by label.
fn profile(program: &Path) -> (Profile, HashMap<String, Vec<usize>>) {
    let printed = output(&mut Command::new(program));
    let mut lines = printed.lines();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let start = number(lines.next().unwrap());
    let mut capture = Capture::new();
    let mut path = [0; 488];
    let name = program.to_str().unwrap().as_bytes();
    path[..name.len()].copy_from_slice(name);
    let module = format::Module {
        start,
        end: start + (1 << 30),
        bias: start,
        path,
    };
    capture.entry(layout::MODULES, 0, module);
    let (mut node, mut site) = (0, 0);
    let mut labels: HashMap<String, Vec<usize>> = HashMap::new();
    for line in lines {
        let (label, rest) = line.split_once(' ').unwrap();
        let (size, stack) = rest.split_once(' ').unwrap();
        let stack: Vec<u64> = stack
            .split(' ')
            .map(number)
            .take_while(|pc| *pc != 0)
            .collect();
        let mut parent = 0;
        for pc in stack.into_iter().rev() {
            node += 1;
            capture.entry(
                layout::NODES,
                u64::from(node),
                format::Node {
                    pc,
                    parent,
                    site: 0,
                },
            );
            parent = node;
        }
        site += 1;
        let bytes = size.parse().unwrap();
        let node = u64::from(node);
        let entry = format::Site {
            node,
            allocations: 1,
            bytes,
            ..zero()
        };
        capture.entry(layout::SITES, site, entry);
        labels
            .entry(label.to_owned())
            .or_default()
            .push(usize::try_from(site - 1).unwrap());
    }
    capture.header.modules = 1;
    capture.header.nodes = u64::from(node);
    capture.header.sites = site;
    (capture.profile().unwrap(), labels)
}

/// Compiles a program of this folder.
fn compile(compiler: &str, source: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let program = folder.join("program");
    output(
        Command::new(compiler)
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(&program),
    );
    program
}

const RUST: [&str; 5] = [
    "--edition=2024",
    "-Copt-level=3",
    "-Csymbol-mangling-version=v0",
    "--crate-name=types",
    "-Awarnings",
];

/// Names of the types of each label's allocations, without repetitions.
fn names(profile: &Profile, labels: &HashMap<String, Vec<usize>>, label: &str) -> Vec<String> {
    let types = labels[label]
        .iter()
        .map(|&site| &profile.sites[site].type_id);
    let mut names: Vec<String> = types
        .map(|index| profile.types[index.unwrap() as usize].name.clone())
        .collect();
    names.dedup();
    names
}

#[test]
fn rust_types_are_named_as_their_user_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        &["-g"][..],
        &["-Cdebuginfo=line-tables-only"],
        &["-g", "-Copt-level=0"],
    ] {
        let program = compile(
            "rustc",
            "types.rs",
            &[&RUST[..], flags].concat(),
            folder.path(),
        );
        let (profile, labels) = profile(&program);
        let expected = [
            ("box", "Box<Node>"),
            ("dyn", "Box<Node>"),
            ("enum", "Box<Shape>"),
            ("vec", "Vec<u32>"),
            ("capacity", "Vec<Node>"),
            ("macro", "Vec<Node>"),
            ("zeroed", "Vec<u16>"),
            ("collect", "Vec<(u32, u64)>"),
            ("slice", "Vec<u32>"),
            ("nested", "Vec<Vec<u8>>"),
            ("string", "String"),
            ("format", "String"),
            ("owned", "String"),
            ("rc", "Rc<Node>"),
            ("arc", "Arc<Node>"),
            ("map", "HashMap<String, u64>"),
            ("set", "HashSet<u32>"),
            ("bset", "BTreeSet<u32>"),
            ("deque", "VecDeque<u16>"),
            ("heap", "BinaryHeap<i64>"),
            ("list", "LinkedList<Pair<u8, u64>>"),
            ("clone", "Vec<f32>"),
        ];
        let wrong: Vec<_> = expected
            .iter()
            .map(|(label, name)| (label, *name, names(&profile, &labels, label)))
            .filter(|(_, name, found)| found != &[*name])
            .collect();
        println!("{flags:?} {wrong:?}");
        assert_eq!(
            names(&profile, &labels, "btree"),
            ["Vec<(u32, u64)>", "BTreeMap<u32, u64>"]
        );
    }
}
