//! Command lines without what looks like a secret.

const REPLACEMENT: &str = "***";

/// Words that make a name one of a secret wherever they stand in it.
const PARTS: [&str; 6] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "credential",
];
/// Words that do so only between marks: "key" in `--api-key`, but not in `--keyboard`.
const WORDS: [&str; 9] = [
    "key",
    "token",
    "tokens",
    "pass",
    "pwd",
    "auth",
    "authorization",
    "bearer",
    "cookie",
];

/// Replaces values that follow a name of a secret, and passwords in addresses.
pub(super) fn hide(command: &[String]) -> Vec<String> {
    let mut next_is_secret = false;
    let hide_one = |word: &String| {
        let follows_name = std::mem::take(&mut next_is_secret);
        if follows_name && !word.starts_with('-') {
            return REPLACEMENT.to_owned();
        }
        // A header has a colon: `-H 'Authorization: Bearer ...'`.
        let parts = word.split_once('=').map(|parts| (parts, '='));
        let parts = parts.or_else(|| word.split_once(": ").map(|parts| (parts, ':')));
        if let Some(((name, _), mark)) = parts.filter(|((name, _), _)| names_secret(name)) {
            return format!("{name}{mark}{REPLACEMENT}");
        }
        next_is_secret = word.starts_with('-') && parts.is_none() && names_secret(word);
        without_password(word)
    };
    command.iter().map(hide_one).collect()
}

fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    name.len() < 100
        && (PARTS.iter().any(|part| name.contains(part)) || words.any(|word| WORDS.contains(&word)))
}

/// `scheme://user:password@host` without the password.
fn without_password(word: &str) -> String {
    let hidden = || {
        let start = word.find("://")? + 3;
        let authority = word[start..].split(['/', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?.0.split_once(':')?;
        let host = start + authority.rfind('@')?;
        Some(format!(
            "{}{user}:{REPLACEMENT}{}",
            &word[..start],
            &word[host..]
        ))
    };
    hidden().unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_hidden_and_others_kept() {
        for (command, expected) in [
            (
                vec!["curl", "--password=hunter2", "x"],
                vec!["curl", "--password=***", "x"],
            ),
            (
                vec!["p", "--api-key", "abc", "y"],
                vec!["p", "--api-key", "***", "y"],
            ),
            (
                vec!["p", "--token", "--verbose"],
                vec!["p", "--token", "--verbose"],
            ),
            (
                vec!["env", "DB_PASSWORD=x", "p"],
                vec!["env", "DB_PASSWORD=***", "p"],
            ),
            (
                vec!["p", "--keyboard=de", "--tokenizer", "x"],
                vec!["p", "--keyboard=de", "--tokenizer", "x"],
            ),
            (
                vec!["-H", "Authorization: Bearer abc"],
                vec!["-H", "Authorization:***"],
            ),
            (
                vec!["git", "https://me:pw@host/a@b"],
                vec!["git", "https://me:***@host/a@b"],
            ),
            (
                vec!["p", "user@host", "http://host/a:b@c"],
                vec!["p", "user@host", "http://host/a:b@c"],
            ),
        ] {
            let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
            assert_eq!(hide(&command), expected);
        }
    }
}
