//! Programs that the library cannot be in. The tests of `cctrace` have this file, too.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::skipped::skipped;
use crate::tools::{SOURCES, command, compile, text};

/// The programs of `ccscope`'s tests, from those of either package.
const PROGRAMS: &str = "../../../scope/tests/programs";

/// Programs that the library cannot be in print the same, behind one line of the tool, which is
/// started by `tool` and `words`.
pub(crate) fn run_as_without(tool: &str, words_of_tool: &[&str]) {
    let folder = TempDir::new().unwrap();
    let starter = compile(
        folder.path(),
        &["cc"],
        &format!("{PROGRAMS}/aside.c"),
        &["-O1"],
    );
    let starter = starter.to_str().unwrap();
    for (compiler, flags, why) in [
        ("musl-gcc", &[][..], "it is a musl program"),
        ("cc", &["-static"], "it is linked statically"),
        ("cc", &["-static-pie"], "it is linked statically"),
        ("gcc", &["-fsanitize=address"], "it has a sanitizer"),
        (
            "gcc",
            &["-fsanitize=address", "-static-libasan"],
            "it has a sanitizer",
        ),
        ("gcc", &["-fsanitize=thread"], "it has a sanitizer"),
        (
            "gcc",
            &["-fsanitize=thread", "-static-libtsan"],
            "it has a sanitizer",
        ),
        ("gcc", &["-fsanitize=leak"], "it has a sanitizer"),
        ("clang", &["-fsanitize=address"], "it has a sanitizer"),
        ("clang", &["-fsanitize=memory"], "it has a sanitizer"),
        ("clang", &["-fsanitize=thread"], "it has a sanitizer"),
        ("gcc", &["-m32"], "it is not for x86-64"),
    ] {
        let program = folder.path().join("program");
        let mut compile = command(compiler);
        compile
            .arg(Path::new(SOURCES).join(PROGRAMS).join("aside.c"))
            .arg("-o")
            .arg(&program)
            .args(flags);
        if !compile.output().is_ok_and(|output| output.status.success()) {
            skipped(&format!("{compiler} {flags:?} compiles nothing here"));
            continue;
        }
        let program = program.to_str().unwrap();
        let script = format!("{program}; exit $?");
        let mut ways = ["execl", "execlp", "execv", "spawn"]
            .map(|how| vec![starter, how, program])
            .to_vec();
        ways.extend([vec!["sh", "-c", &*script], vec![program]]);
        for words in ways {
            let mut command = command(tool);
            command.args(words_of_tool);
            command.args(["-q", "-o", "main.ccscope"]).args(&words);
            let output = command.current_dir(folder.path()).output().unwrap();
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            let what = format!("{words_of_tool:?} {words:?} {compiler} {flags:?}: {err}");
            assert_eq!(
                (out.as_str(), output.status.code()),
                ("hi\n", Some(3)),
                "{what}"
            );
            assert_eq!(err.lines().count(), 1, "{what}");
            let is_child = words.len() > 1;
            let line = if is_child {
                why
            } else {
                "runs as without the tool"
            };
            assert!(err.contains(line) && err.contains(program), "{what}");
        }
    }
}

/// A program that is setuid keeps its rights, and the tool says that it is not in it.
pub(crate) fn keep_rights(own: &str, words_of_tool: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return skipped("only root makes a program setuid");
    }
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for name in ["tool", "home"] {
        fs::create_dir(at(name)).unwrap();
    }
    std::os::unix::fs::chown(at("home"), Some(NOBODY), Some(NOBODY)).unwrap();
    let tool = at("tool/ccscope");
    fs::copy(own, &tool).unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        &format!("{PROGRAMS}/setuid.c"),
        &["-O1"],
    );
    for path in [folder.path(), &at("tool"), &tool] {
        mode(path, 0o755).unwrap();
    }
    mode(&program, 0o4755).unwrap();
    let program = program.to_str().unwrap();
    let script = format!("{program}; exit $?");
    for words in [&[program][..], &["sh", "-c", &script]] {
        let mut command = command(tool.to_str().unwrap());
        command.args(words_of_tool);
        command.args(["-q", "-o", "main.ccscope"]).args(words);
        command.current_dir(at("home")).uid(NOBODY).gid(NOBODY);
        let output = command.env("XDG_CACHE_HOME", at("home")).output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let end = (out.as_str(), output.status.code());
        assert_eq!(
            end,
            ("65534 0\n", Some(3)),
            "{words_of_tool:?} {words:?}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains(program) && err.contains("setuid"), "{err}");
    }
}
