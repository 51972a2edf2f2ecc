//! Command lines without what may be a secret: only what has a harmless form is kept.

const REPLACEMENT: &str = "***";

/// Options whose values, if they are numbers, tell nothing.
const COUNTS: [&str; 24] = [
    "batch",
    "bytes",
    "count",
    "depth",
    "height",
    "iterations",
    "jobs",
    "keys",
    "len",
    "length",
    "level",
    "limit",
    "max",
    "min",
    "nodes",
    "num",
    "repeat",
    "rounds",
    "seed",
    "size",
    "steps",
    "test-threads",
    "threads",
    "width",
];
/// The same of one letter.
const COUNT_LETTERS: [&str; 4] = ["-c", "-j", "-n", "-t"];
/// Parts of names of options behind which a secret stands, whatever it looks like.
const SECRETS: [&str; 14] = [
    "pass",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "cookie",
    "bearer",
    "pwd",
    "pin",
    "otp",
    "user",
    "header",
    "login",
];
/// Digits of the longest number that is kept: longer ones are numbers of cards and accounts.
const MAX_DIGITS: usize = 10;

/// The name of the program, and of its arguments what has a harmless form:
///
/// * names of long options, such as `--verbose`, and single letters, such as `-v`;
/// * numbers that stand alone, as `1000` or `-n 1000`, or behind an option that counts something,
///   as `--size=1000`.
///
/// Everything else is replaced, and so is all that follows the name of a secret.
pub fn hide(command: &[String], keep_arguments: bool) -> Vec<String> {
    if keep_arguments {
        return command.to_vec();
    }
    let Some((program, arguments)) = command.split_first() else {
        return Vec::new();
    };
    let mut shown = vec![name(program)];
    let mut before = "";
    for word in arguments {
        shown.push(argument(before, word));
        before = word;
    }
    shown
}

/// A process may write its title over its arguments: the first word of it.
fn name(program: &str) -> String {
    match program.split_whitespace().next() {
        // Perhaps an address, with a password.
        Some(name) if !name.contains("://") && !name.contains('@') => name.to_owned(),
        Some(_) => REPLACEMENT.to_owned(),
        None => String::new(),
    }
}

fn argument(before: &str, word: &str) -> String {
    if names_secret(before) {
        return REPLACEMENT.to_owned();
    }
    if let Some((option, value)) = word.split_once('=')
        && is_long_option(option)
    {
        let is_harmless = is_number(value) && counts(option);
        let value = if is_harmless { value } else { REPLACEMENT };
        return format!("{option}={value}");
    }
    let is_letter = word.len() == 2 && word.starts_with('-');
    let is_harmless = is_long_option(word)
        || is_letter && word.ends_with(|letter: char| letter.is_ascii_alphabetic())
        || is_number(word) && (!before.starts_with('-') || before == "--" || counts(before));
    match is_harmless || word == "--" || word == "-" {
        true => word.to_owned(),
        false => REPLACEMENT.to_owned(),
    }
}

fn counts(option: &str) -> bool {
    COUNT_LETTERS.contains(&option) || COUNTS.contains(&option.trim_start_matches('-'))
}

/// `--test-threads`, but nothing with digits or large letters, as passwords have.
fn is_long_option(word: &str) -> bool {
    let name = word.strip_prefix("--").unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    !name.is_empty() && name.len() <= 32 && name.bytes().all(is_name)
}

fn is_number(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    (1..=MAX_DIGITS).contains(&digits)
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether the word before is an option whose value is a secret.
fn names_secret(option: &str) -> bool {
    let name = option.to_ascii_lowercase();
    // `-p` and `-u` are passwords and users as often as anything else; they show no value anyhow.
    name.starts_with('-') && SECRETS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(line: &[&str]) -> Vec<String> {
        let words: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(hide(&words, true), words);
        hide(&words, false)
    }

    #[test]
    fn only_harmless_forms_are_kept() {
        for line in [
            &["prog", "1000", "--verbose", "-v", "--", "2.5", "-"][..],
            &["/bin/prog", "--size=10", "--threads", "8", "-n", "1000"],
            &["prog", "--test-threads=1", "--nocapture", "-j", "2"],
        ] {
            assert_eq!(hidden(line), line);
        }
        for (line, expected) in [
            (&["server: main --token=x"][..], &["server:"][..]),
            (&["https://me:x@host/p", "a"], &["***", "***"]),
            (&["sh", "-c", "echo $TOKEN"], &["sh", "-c", "***"]),
            (&["p", "--out=a.txt", "b"], &["p", "--out=***", "***"]),
            (&["p", "--size=ten"], &["p", "--size=***"]),
            (&["p", "4111111111111111"], &["p", "***"]),
        ] {
            assert_eq!(hidden(line), expected);
        }
    }

    #[test]
    fn no_usual_form_of_a_secret_is_kept() {
        for secret in [
            "hunter2", "x", "-x", "--x", "1234", "Bearer x", "me:x", "eHg9eA==",
        ] {
            for line in [
                vec!["-H".to_owned(), format!("Authorization:{secret}")],
                vec!["-H".to_owned(), format!("Authorization: Bearer {secret}")],
                vec![format!("--header=Authorization: Bearer {secret}")],
                vec!["--header".to_owned(), secret.to_owned()],
                vec!["-u".to_owned(), format!("me:{secret}")],
                vec!["--user".to_owned(), secret.to_owned()],
                vec![format!("-p{secret}")],
                vec![format!("https://{secret}@host/")],
                vec![format!("https://me:{secret}@host/?a=b")],
                vec![format!("https://host/?a=b&token={secret}")],
                vec![format!("postgres://me:{secret}@host/db?size=1")],
                vec!["--password".to_owned(), secret.to_owned()],
                vec![format!("--password={secret}")],
                vec!["--api-key".to_owned(), secret.to_owned()],
                vec![format!("--pin={secret}")],
                vec!["--PASSWORD".to_owned(), secret.to_owned()],
                vec![format!("TOKEN={secret}")],
                vec![format!("env;{secret}")],
            ] {
                let words: Vec<&str> = line.iter().map(String::as_str).collect();
                let shown = hidden(&[&["prog"], &words[..]].concat())[1..].join(" ");
                let names = [
                    "--header",
                    "--user",
                    "--password",
                    "--api-key",
                    "--pin",
                    "-H",
                    "-u",
                ];
                let left = names
                    .iter()
                    .fold(shown.clone(), |text, name| text.replace(name, ""));
                assert!(
                    left.chars().all(|char| "*= ".contains(char)),
                    "{line:?}: {shown}"
                );
            }
        }
    }
}
