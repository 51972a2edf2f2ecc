//! Which flags make a compiler call the runtime for each load and store.
//!
//! `rustc` runs LLVM's pass `asan` when it is asked to, and for regions the entries and exits of
//! `tsan`; `forceattrs` gives every function the attribute that a pass looks for. Names of passes
//! and options are LLVM's own and change with its versions, so a [canary](super::canary) is
//! compiled and counted before they are used.

/// A compiler's release, and that of its LLVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// All that `rustc -vV` prints.
    pub(super) text: String,
    pub(super) host: String,
    /// Minor version: 89 for 1.89.0.
    pub(super) minor: u32,
    pub(super) llvm: u32,
}

impl Compiler {
    /// Reads what `rustc -vV` prints.
    pub(super) fn parse(text: &str) -> Option<Compiler> {
        let value = |name| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        Some(Compiler {
            text: text.to_owned(),
            host: value("host")?.to_owned(),
            minor: value("release")?
                .strip_prefix("1.")?
                .split('.')
                .next()?
                .parse()
                .ok()?,
            llvm: value("LLVM version")?.split('.').next()?.parse().ok()?,
        })
    }

    pub(super) fn name(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// Flags for compilers from one release on, up to the next entry's.
#[derive(Debug)]
struct Entry {
    minor: u32,
    llvm: u32,
    passes: &'static str,
    /// Options of LLVM.
    options: &'static [&'static str],
    /// Passes and options that are added for regions.
    regions: (&'static str, &'static [&'static str]),
}

/// The oldest release first. Each was tried with the compilers that its tests name.
const TABLE: [Entry; 1] = [
    // 1.89 (LLVM 20), 1.95 (LLVM 22) and nightly 1.97 (LLVM 22).
    Entry {
        minor: 89,
        llvm: 20,
        passes: "forceattrs,asan",
        options: &[
            "-force-attribute=sanitize_address",
            // A call for each access, also where LLVM thinks that code in place is better, and one
            // that it has already seen.
            "-asan-instrumentation-with-call-threshold=0",
            "-asan-opt=0",
            "-asan-max-ins-per-bb=2147483647",
            // Only accesses: no padding on the stack, in globals or in arguments, and no start.
            "-asan-stack=0",
            "-asan-globals=0",
            "-asan-redzone-byval-args=0",
            "-asan-instrument-dynamic-allocas=0",
            "-asan-use-after-scope=0",
            "-asan-use-after-return=never",
            "-asan-constructor-kind=none",
            "-asan-guard-against-version-mismatch=0",
        ],
        // After the other, whose calls make a function worth an entry.
        regions: (
            ",function(tsan)",
            &[
                "-force-attribute=sanitize_thread",
                "-tsan-instrument-memory-accesses=0",
                "-tsan-instrument-memintrinsics=0",
                "-tsan-instrument-atomics=0",
            ],
        ),
    },
];

/// Has LLVM instrument accesses of the stack that it proves to be within bounds, too.
pub(super) const ALL_MEMORY: &str = "-asan-use-stack-safety=0";

/// The flags for `compiler`, with entries and exits of functions if `regions` is set, and with
/// accesses of variables on the stack if `all_memory` is; `None` if it is older than all that were
/// tried.
pub(super) fn instrumentation(
    compiler: &Compiler,
    regions: bool,
    all_memory: bool,
) -> Option<Vec<String>> {
    let fits = |entry: &&Entry| compiler.minor >= entry.minor && compiler.llvm >= entry.llvm;
    let entry = TABLE.iter().rfind(fits)?;
    let (passes, options) = if regions {
        entry.regions
    } else {
        ("", &[][..])
    };
    let mut flags = vec![format!("-Cpasses={}{passes}", entry.passes)];
    let options = entry.options.iter().chain(options);
    let options = options.chain(all_memory.then_some(&ALL_MEMORY));
    flags.extend(options.map(|option| format!("-Cllvm-args={option}")));
    // With several, the passes run before vectorisation and count what is not executed.
    flags.push("-Ccodegen-units=1".to_owned());
    Some(flags)
}

/// Flags that let a profile name functions with their generic arguments, types and lines.
pub(super) fn debug_information() -> [String; 3] {
    [
        "-Cdebuginfo=2",
        "-Cstrip=none",
        "-Csymbol-mangling-version=v0",
    ]
    .map(str::to_owned)
}

/// The oldest release that there are flags for.
pub(super) fn oldest() -> String {
    format!("1.{}", TABLE[0].minor)
}

/// Flags of gcc for the same callbacks. It leaves out an access to an address that the same run
/// of instructions has accessed.
pub(super) const GCC: [&str; 7] = [
    "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "--param=asan-instrument-allocas=0",
    "-fno-sanitize-address-use-after-scope",
    // The program is not to think that a sanitizer is there.
    "-U__SANITIZE_ADDRESS__",
];

/// Flags of clang that says `version` of itself: each option of LLVM follows a `-mllvm`.
pub(super) fn clang(version: &str) -> Vec<&'static str> {
    let release = version.split_once("clang version ");
    let release = release.and_then(|(_, rest)| rest.split('.').next()?.parse::<u32>().ok());
    // 14 and 19 were tried. Older ones call `memcpy`, which the runtime has in place of libc.
    let prefix = (release.is_none_or(|release| release >= 16))
        .then_some("-asan-kernel-mem-intrinsic-prefix=1");
    let options = CLANG.into_iter().chain(prefix);
    let options = options.flat_map(|option| ["-mllvm", option]);
    ["-fsanitize=kernel-address"]
        .into_iter()
        .chain(options)
        .collect()
}

const CLANG: [&str; 7] = [
    "-asan-instrumentation-with-call-threshold=0",
    "-asan-opt=0",
    "-asan-max-ins-per-bb=2147483647",
    "-asan-stack=0",
    "-asan-globals=0",
    "-asan-use-after-scope=0",
    "-asan-instrument-dynamic-allocas=0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_by_what_they_print() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n\
                    host: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";
        let compiler = Compiler::parse(text).unwrap();
        assert_eq!((compiler.minor, compiler.llvm), (95, 22));
        assert_eq!(compiler.host, "x86_64-unknown-linux-gnu");
        assert_eq!(compiler.name(), "rustc 1.95.0 (59807616e 2026-04-14)");
        let flags = |all_memory| instrumentation(&compiler, true, all_memory).unwrap();
        let added = "-Cllvm-args=-asan-use-stack-safety=0".to_owned();
        assert!(flags(true).contains(&added) && !flags(false).contains(&added));
        assert_eq!(
            instrumentation(
                &Compiler {
                    minor: 88,
                    ..compiler.clone()
                },
                false,
                false
            ),
            None
        );
        assert_eq!(
            instrumentation(
                &Compiler {
                    llvm: 19,
                    ..compiler
                },
                false,
                false
            ),
            None
        );
        let nightly = text.replace("release: 1.95.0", "release: 1.97.0-nightly");
        assert_eq!(Compiler::parse(&nightly).unwrap().minor, 97);
        assert_eq!(Compiler::parse("rustc 1.95.0"), None);
    }
}
