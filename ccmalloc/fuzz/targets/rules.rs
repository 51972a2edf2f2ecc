//! The text of rules: any bytes are read or refused.
#![no_main]

#[path = "../../capi/src/rules/text.rs"]
mod text;

use libfuzzer_sys::fuzz_target;
use text::{HEADER, Parsed, Places};

const PLACES: Places = Places {
    registers: &["rbx", "rbp", "r12", "r13", "r14", "r15"],
    stack: "rsp",
    stack_word: 6,
};

fuzz_target!(|bytes: &[u8]| {
    // Few inputs would get past the first line by themselves.
    let text = [HEADER.as_bytes(), b"\nmodule a build-id b\n", bytes].concat();
    for text in [bytes, &text] {
        let mut parsed = Box::new(Parsed::EMPTY);
        let Err(error) = parsed.read(text, PLACES, 8) else {
            for rule in parsed.rules.iter().flatten() {
                let (start, end) = rule.text;
                assert_eq!(
                    text[start as usize..end as usize]
                        .trim_ascii_start()
                        .first(),
                    Some(&b'+')
                );
                assert!(parsed.modules[usize::from(rule.site.module)].is_some());
            }
            continue;
        };
        let lines = text.split(|&byte| byte == b'\n').count();
        assert!((1..=lines).contains(&error.line), "{error}");
    }
});
