//! What cargo's configuration says of the programs that cargo starts: the compiler, what wraps it,
//! and what runs programs. Flags are left to cargo.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{CliError, fail};

pub(super) const HOST: &str = "x86_64-unknown-linux-gnu";
/// The runner of programs for [`HOST`].
pub(super) const RUNNER_VARIABLE: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";

/// The merged files, and what `--config` adds.
#[derive(Debug, Default)]
pub(super) struct Config {
    values: Value,
    /// The same with the file of each value.
    origins: String,
}

/// A program with its first arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) words: Vec<String>,
    /// Whether the files, or `--config`, have it in one string: cargo merges no array with that.
    pub(super) is_string: bool,
}

impl Config {
    /// Asks cargo, with the options `args` that change its answer.
    pub(super) fn read(
        cargo: &OsStr,
        args: &[&OsString],
        err: &mut dyn Write,
    ) -> Result<Config, CliError> {
        let ask = |format: &[&str]| {
            // Cargo can say what its files hold, but not yet without this variable.
            let mut command = Command::new(cargo);
            command.args(["-Zunstable-options", "config", "get"]);
            command.args(format).args(args).env("RUSTC_BOOTSTRAP", "1");
            output(&mut command)
        };
        let merged = ask(&["--format=json"])?;
        if !merged.status.success() {
            let why = one_line(&String::from_utf8_lossy(&merged.stderr));
            writeln!(
                err,
                "ccscope: wrappers of the compiler and runners that cargo's configuration names \
                 are left out: {why}"
            )?;
            return Ok(Config::default());
        }
        let origins = ask(&["--show-origin"])?.stdout;
        Ok(Config {
            values: serde_json::from_slice(&merged.stdout)?,
            origins: String::from_utf8_lossy(&origins).into_owned(),
        })
    }

    /// The compiler.
    pub(super) fn rustc(&self) -> OsString {
        let named = ["RUSTC", "CARGO_BUILD_RUSTC"].into_iter().find_map(of);
        let named = named.or_else(|| Some(self.program("build", "rustc")?.words[0].clone().into()));
        named.unwrap_or_else(|| "rustc".into())
    }

    /// What the user starts the compiler by.
    pub(super) fn wrapper(&self) -> Option<OsString> {
        // An empty variable says that there is none.
        if let Some(wrapper) = env::var_os("RUSTC_WRAPPER") {
            return Some(wrapper).filter(|wrapper| !wrapper.is_empty());
        }
        of("CARGO_BUILD_RUSTC_WRAPPER").or_else(|| {
            Some(
                self.program("build", "rustc-wrapper")?.words[0]
                    .clone()
                    .into(),
            )
        })
    }

    /// What the user starts programs by, without words if by nothing.
    pub(super) fn runner(&self, rustc: &OsStr) -> Program {
        let filed = self.program(&format!("target.{HOST}"), "runner");
        let is_string = filed.as_ref().is_some_and(|program| program.is_string);
        let variable = of(RUNNER_VARIABLE);
        let words = variable.map(|text| {
            let text = text.to_string_lossy();
            text.split_whitespace().map(str::to_owned).collect()
        });
        let is_option = || {
            self.origin(&format!("target.{HOST}.runner"))
                .contains(OPTION)
        };
        let words = match (words, filed) {
            (Some(words), None) => words,
            (Some(words), Some(_)) if !is_option() => words,
            (_, Some(filed)) => filed.words,
            (None, None) => self.runner_of_cfg(rustc).unwrap_or_default(),
        };
        Program { words, is_string }
    }

    /// That of the first `target.'cfg(..)'` that holds here, as the compiler says.
    fn runner_of_cfg(&self, rustc: &OsStr) -> Option<Vec<String>> {
        let tables = self.values["target"].as_object()?;
        let has_runner = |(key, table): &(&String, &Value)| {
            key.starts_with("cfg(") && table.get("runner").is_some()
        };
        let keys: Vec<&String> = tables
            .iter()
            .filter(has_runner)
            .map(|(key, _)| key)
            .collect();
        if keys.is_empty() {
            return None;
        }
        // The last line is for the compiler to write nothing.
        let lines = keys.iter().enumerate();
        let lines = lines.map(|(i, key)| format!("#[{key}] compile_error!(\"holds {i}.\");\n"));
        let source = lines.collect::<String>() + "compile_error!(\"end\");\n";
        let mut command = Command::new(rustc);
        command.args(["--target", HOST, "--crate-type=lib", "--emit=metadata", "-"]);
        command.current_dir(env::temp_dir()).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(source.as_bytes()).ok()?;
        let said = child.wait_with_output().ok()?.stderr;
        let said = String::from_utf8_lossy(&said);
        let holds = |i: &usize| said.contains(&format!("error: holds {i}."));
        let key = keys[(0..keys.len()).find(holds)?];
        Some(self.program(&format!("target.{key}"), "runner")?.words)
    }

    /// The program of this name in this table, with the path that cargo makes of it.
    fn program(&self, table: &str, name: &str) -> Option<Program> {
        let (root, rest) = table.split_once('.').unwrap_or((table, ""));
        let mut value = &self.values[root];
        if !rest.is_empty() {
            value = value.get(rest)?;
        }
        let value = value.get(name)?;
        let words: Vec<String> = match value {
            Value::String(text) if name == "runner" => {
                text.split_whitespace().map(str::to_owned).collect()
            }
            Value::String(text) => vec![text.clone()],
            Value::Array(list) => {
                let text = |word: &Value| word.as_str().map(str::to_owned);
                list.iter().filter_map(text).collect()
            }
            _ => Vec::new(),
        };
        let mut words = words.into_iter();
        let first = words.next()?;
        let first = match first.contains('/') && !first.starts_with('/') {
            true => self.folder(&format!("{table}.{name}")).join(&first),
            false => first.into(),
        };
        Some(Program {
            words: [first.to_str()?.to_owned()]
                .into_iter()
                .chain(words)
                .collect(),
            is_string: value.is_string(),
        })
    }

    /// Where paths of the value begin: beside the folder of its file, or here.
    fn folder(&self, key: &str) -> PathBuf {
        let file = Path::new(self.origin(key));
        let folder = file.parent().and_then(Path::parent);
        match folder.filter(|_| file.is_absolute()) {
            Some(folder) => folder.to_owned(),
            None => env::current_dir().unwrap_or_default(),
        }
    }

    /// What cargo says of where a value comes from.
    fn origin(&self, key: &str) -> &str {
        let bare = |text: &str| text.replace(['\'', '"', '\\'], "");
        let key = bare(key);
        let lines = self.origins.lines();
        let mut from = lines.skip_while(|line| {
            bare(line.split(" = ").next().unwrap_or("")) != key
                && !bare(line).starts_with(&format!("{key} = "))
        });
        // Of an array, each element has its own.
        let origin = from
            .by_ref()
            .take(2)
            .find_map(|line| line.rsplit_once(" # "));
        origin.map_or("", |(_, origin)| origin)
    }
}

pub(super) fn output(command: &mut Command) -> Result<Output, CliError> {
    let name = command.get_program().to_owned();
    let output = command.output();
    Ok(output.map_err(|error| format!("{}: cannot be started: {error}", name.display()))?)
}

/// What cargo says of an error.
pub(super) fn one_line(text: &str) -> String {
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How cargo calls `--config`.
const OPTION: &str = "cli option";

/// A variable that is not empty.
fn of(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

impl Program {
    /// `--config` and the variable by which cargo starts programs by this one, `tool` and `word`.
    pub(super) fn then(&self, tool: &Path, word: &str) -> Result<(String, String), CliError> {
        let Some(tool) = tool.to_str() else {
            return fail(format!(
                "{} is no Unicode text, which cargo asks for",
                tool.display()
            ));
        };
        let mut words = self.words.clone();
        words.extend([tool.to_owned(), word.to_owned()]);
        let has_blank = words.iter().any(|word| word.contains(char::is_whitespace));
        if has_blank && self.is_string {
            return fail(format!(
                "cargo cannot start `{}`, which has a blank in a word, beside a `runner` that is \
                 one string: make that a list",
                words.join(" ")
            ));
        }
        let text = words.join(" ");
        let value = match self.is_string {
            true => toml(&text),
            false => {
                let words: Vec<String> = words.iter().map(|word| toml(word)).collect();
                format!("[{}]", words.join(","))
            }
        };
        let variable = if has_blank { String::new() } else { text };
        Ok((format!("target.{HOST}.runner={value}"), variable))
    }
}

fn toml(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_cargo_finds_them() {
        let config = Config {
            values: serde_json::json!({
                "build": {"rustc-wrapper": "tools/w", "rustc": "rustc"},
                "target": {HOST: {"runner": "env A=1"}, "cfg(unix)": {"runner": ["x/y", "a b"]}},
            }),
            origins: format!(
                "build.rustc-wrapper = \"tools/w\" # /p/.cargo/config.toml\n\
                 target.{HOST}.runner = \"env A=1\" # --config cli option\n\
                 target.'cfg(unix)'.runner = [\n    \"x/y\", # /q/.cargo/config.toml\n]\n"
            ),
        };
        let words = |table: &str, name| config.program(table, name).unwrap();
        assert_eq!(words("build", "rustc-wrapper").words, ["/p/tools/w"]);
        assert_eq!(words("build", "rustc").words, ["rustc"]);
        assert_eq!(words("target.cfg(unix)", "runner").words, ["/q/x/y", "a b"]);
        let runner = words(&format!("target.{HOST}"), "runner");
        assert_eq!(
            (&runner.words[..], runner.is_string),
            (&["env".into(), "A=1".into()][..], true)
        );
        assert!(
            config
                .origin(&format!("target.{HOST}.runner"))
                .contains(OPTION)
        );
        let (option, variable) = runner.then(Path::new("/c"), "run").unwrap();
        assert_eq!(option, format!("target.{HOST}.runner=\"env A=1 /c run\""));
        assert_eq!(variable, "env A=1 /c run");
        assert!(runner.then(Path::new("/a b"), "run").is_err());
        let (option, variable) = Program::default()
            .then(Path::new("/a \"\n"), "run")
            .unwrap();
        assert_eq!(
            option,
            format!("target.{HOST}.runner=[\"/a \\\"\\u000a\",\"run\"]")
        );
        assert_eq!(variable, "");
    }
}
