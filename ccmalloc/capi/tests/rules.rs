//! The text of rules: what is read, and that anything else is told apart from it.

#[path = "../src/rules/text.rs"]
mod text;

use quickcheck::quickcheck;
use text::{Action, HEADER, Module, Parsed, Places, PolicyName, RULES_MAX, Rule, Site, small};

const LASTS: usize = 8;
const PLACES: Places = Places {
    registers: &["rbx", "rbp", "r12", "r13", "r14", "r15"],
    stack: "rsp",
    stack_word: 6,
};

fn read(text: &[u8]) -> Result<Box<Parsed<'_>>, (usize, &'static str)> {
    let mut parsed = Box::new(Parsed::EMPTY);
    let read = parsed.read(text, PLACES, LASTS);
    read.map(|()| parsed)
        .map_err(|error| (error.line, error.reason))
}

/// The rules of lines that follow a header and a module.
fn rules(lines: &str) -> Result<Vec<Rule>, (usize, &'static str)> {
    let text = format!("{HEADER}\nmodule program build-id 3f9c\n{lines}");
    read(text.as_bytes()).map(|parsed| parsed.rules.iter().flatten().copied().collect())
}

#[test]
fn the_example_of_the_document_is_read() {
    let text = b"ccmalloc rules 1   # by hand\n\
        module libx.so.6 build-id 00ff /usr/lib/libx.so.6\n\
        module program build-id 3f9c07\n\
        \n\
        # a comment\n\
        +b9990 size 16 near r14\n\
        +a2010 size 16 open first-fit\n\
        module libx.so.6 build-id 00ff\n\
        +a958c size 96 caller program+41f2 at rsp+24 near rsp+224 closest # as measured\n\
        +7c110 size 32 near last new-block\n\
        +99a00 size 1048576 huge";
    let parsed = read(text).unwrap();
    let module = |name, build_id| Some(Module { name, build_id });
    assert_eq!(parsed.modules[0], module(&b"libx.so.6"[..], &b"00ff"[..]));
    assert_eq!(parsed.modules[1], module(&b"program"[..], &b"3f9c07"[..]));
    assert_eq!((parsed.modules[2], parsed.lasts), (None, 1));
    let rules: Vec<_> = (parsed.rules.iter().flatten())
        .map(|it| {
            let (start, end) = it.text;
            let text = &text[start as usize..end as usize];
            let text = std::str::from_utf8(text).unwrap();
            (
                it.site.module,
                it.site.offset,
                it.bytes,
                it.caller,
                it.action,
                it.policy,
                text,
            )
        })
        .collect();
    let program = Site {
        module: 1,
        offset: 0x41f2,
    };
    let caller = "+a958c size 96 caller program+41f2 at rsp+24 near rsp+224 closest";
    assert_eq!(
        rules,
        [
            (
                1,
                0xb9990,
                16,
                None,
                Action::Near(4),
                None,
                "+b9990 size 16 near r14"
            ),
            (
                1,
                0xa2010,
                16,
                None,
                Action::Open,
                Some(PolicyName::FirstFit),
                "+a2010 size 16 open first-fit"
            ),
            (
                0,
                0xa958c,
                96,
                Some((program, 9)),
                Action::Near(34),
                Some(PolicyName::Closest),
                caller
            ),
            (
                0,
                0x7c110,
                32,
                None,
                Action::Last(0),
                Some(PolicyName::NewBlock),
                "+7c110 size 32 near last new-block"
            ),
            (
                0,
                0x99a00,
                1 << 20,
                None,
                Action::Huge,
                None,
                "+99a00 size 1048576 huge"
            ),
        ]
    );
}

#[test]
fn what_is_no_rule_is_named_by_its_line() {
    let first = "not a file of rules: it does not begin with \"ccmalloc rules 1\"";
    for text in [
        "",
        "\n",
        "ccmalloc rules 2",
        "ccmalloc",
        "module a build-id b",
    ] {
        assert_eq!(read(text.as_bytes()).err(), Some((1, first)), "{text}");
    }
    let before = format!("{HEADER}\n+1 size 8 open");
    assert_eq!(
        read(before.as_bytes()).err(),
        Some((2, "a rule before any module"))
    );
    for (line, reason) in [
        ("module", "expected: module NAME build-id ID"),
        ("module a build-id", "expected: module NAME build-id ID"),
        ("module a id b", "expected: module NAME build-id ID"),
        (
            "b9990 size 16 near r14",
            "expected: +OFFSET size BYTES ACTION",
        ),
        ("+ size 16 near r14", "expected: +OFFSET size BYTES ACTION"),
        (
            "++1 size 16 near r14",
            "expected: +OFFSET size BYTES ACTION",
        ),
        ("+g size 16 near r14", "expected: +OFFSET size BYTES ACTION"),
        (
            "+11111111111111111 size 16 open",
            "expected: +OFFSET size BYTES ACTION",
        ),
        ("+1", "expected `size` behind the offset"),
        ("+1 size", "expected a number of bytes"),
        ("+1 size -1 open", "expected a number of bytes"),
        ("+1 size 0x10 open", "expected a number of bytes"),
        ("+1 size 16", "expected `near PLACE`, `open` or `huge`"),
        (
            "+1 size 16 beside r14",
            "expected `near PLACE`, `open` or `huge`",
        ),
        ("+1 size 16 near", "expected a place behind `near`"),
        (
            "+1 size 16 open tight",
            "expected a policy: closest, first-fit or new-block",
        ),
        ("+1 size 16 open closest closest", "more than a rule"),
        (
            "+1 size 16 caller b+1 at rsp+8 open",
            "expected MODULE+OFFSET, of a module named above",
        ),
        (
            "+1 size 16 caller program at rsp+8 open",
            "expected MODULE+OFFSET, of a module named above",
        ),
        (
            "+1 size 16 caller program+1 near r14",
            "expected `at` and a place of the stack behind the caller",
        ),
        (
            "+1 size 16 caller program+1 at r14 open",
            "not a place of the stack",
        ),
    ] {
        assert_eq!(rules(line), Err((3, reason)), "{line}");
    }
    for place in [
        "rax",
        "rsp",
        "rsp+",
        "rsp+4",
        "rsp+264",
        "rsp-8",
        "rsp+18446744073709551616",
    ] {
        let reason = "no such place: neither a register that calls preserve nor on the stack";
        assert_eq!(
            rules(&format!("+1 size 16 near {place}")),
            Err((3, reason)),
            "{place}"
        );
    }
}

#[test]
fn lists_are_bounded() {
    let many = |count| "+1 size 8 open\n".repeat(count);
    assert_eq!(rules(&many(RULES_MAX)).unwrap().len(), 255);
    assert_eq!(
        rules(&many(RULES_MAX + 1)),
        Err((258, "more than 255 rules"))
    );
    let lasts = |count| "+1 size 8 near last\n".repeat(count);
    assert_eq!(rules(&lasts(LASTS)).unwrap().len(), 8);
    let reason = "too many rules ask for the latest object";
    assert_eq!(rules(&lasts(LASTS + 1)), Err((11, reason)));
    let modules = |count| {
        (0..count)
            .map(|it| format!("module m build-id {it}\n"))
            .collect::<String>()
    };
    // With the one before them.
    assert_eq!(rules(&modules(63)).unwrap(), []);
    assert_eq!(rules(&modules(64)), Err((66, "more than 64 modules")));
    assert_eq!((small(0), small(255)), (0, 255));
}

quickcheck! {
    /// Any bytes are read or refused, and what is read names only what there is.
    fn any_text_is_read_or_refused(picks: Vec<(u8, u8)>) -> bool {
        const WORDS: [&str; 24] = [
            "module", "program", "build-id", "3f", "\n", "+1f", "size", "16", "near", "r14",
            "rsp+8", "last", "open", "huge", "caller", "program+1", "at", "closest", "#", " ", "\t",
            "\0", "\u{e9}", "18446744073709551616",
        ];
        let mut text = HEADER.to_owned();
        for (word, separator) in picks {
            text += ["\n", " ", " ", " ", ""][usize::from(separator) % 5];
            text += WORDS[usize::from(word) % WORDS.len()];
        }
        read(text.as_bytes()).map_or_else(
            |(line, _)| line <= text.lines().count() + 1,
            |parsed| {
                let modules = parsed.modules.iter().flatten().count();
                (parsed.rules.iter().flatten()).all(|rule| {
                    let (start, end) = rule.text;
                    usize::from(rule.site.module) < modules
                        && rule.caller.is_none_or(|(site, _)| usize::from(site.module) < modules)
                        && text.get(start as usize..end as usize).is_some_and(|it| {
                            it.trim_start().starts_with('+')
                        })
                })
            },
        )
    }
}
