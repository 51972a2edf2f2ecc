//! Chromium without a window, by its debugging protocol over a pipe.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::missing;

/// A browser with one tab.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Number of the last command.
    id: u64,
    session: Value,
    /// What the page has complained about, and what it has asked the network for.
    pub(crate) complaints: Vec<String>,
    pub(crate) requests: Vec<String>,
    _profile: TempDir,
}

/// The executable, if there is one.
fn chromium() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    places.find(|place| place.is_file())
}

impl Browser {
    /// `None` if there is no Chromium.
    pub(crate) fn start() -> Option<Browser> {
        let Some(program) = chromium() else {
            missing("Chromium");
            return None;
        };
        let profile = TempDir::new().unwrap();
        // Descriptors 3 and 4 are those of the protocol.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1",
                "sh",
            ])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--no-first-run",
                "--remote-debugging-pipe",
                "--window-size=1280,1000",
            ])
            .args(["--hide-scrollbars", "--force-prefers-reduced-motion"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            to,
            from: BufReader::new(from),
            id: 0,
            session: Value::Null,
            complaints: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let tab = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": tab["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let mut command = json!({ "id": self.id, "method": method, "params": params });
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        write!(self.to, "{command}\0").unwrap();
        loop {
            let mut text = Vec::new();
            self.from.read_until(0, &mut text).unwrap();
            text.pop();
            assert!(!text.is_empty(), "Chromium has ended");
            let message: Value = serde_json::from_slice(&text).unwrap();
            if message["id"] == self.id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params.to_string()),
            Some("Runtime.consoleAPICalled") if params["type"] != "log" => {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.to_owned());
            }
            _ => {}
        }
    }

    /// Opens a page at a fragment and waits until it is ready; the milliseconds that it took.
    pub(crate) fn open(&mut self, page: &Path, fragment: &str) -> f64 {
        // Another fragment of the same file would open nothing.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        let url = format!("file://{}#{fragment}", page.display());
        self.call("Page.navigate", json!({ "url": url }));
        let begun = Instant::now();
        loop {
            let failed = self.eval("document.documentElement?.dataset.failed !== undefined");
            assert_eq!(failed, false, "{url} cannot be read: {:?}", self.complaints);
            let waits = begun.elapsed() < Duration::from_secs(120);
            assert!(waits, "{url} is never ready: {:?}", self.complaints);
            let ready = self.eval("Number(document.documentElement?.dataset.ready ?? 0)");
            match ready.as_f64() {
                Some(ready) if ready > 0.0 => return ready,
                _ => sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The value of an expression, or of what it promises.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let result = self.call("Runtime.evaluate", params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Does something, waits until the page has answered, and returns the longest time between two
    /// frames meanwhile, in milliseconds.
    pub(crate) fn act(&mut self, script: &str) -> f64 {
        let longest = self.eval(&format!(
            "new Promise((done) => {{
                let [before, longest, quiet] = [performance.now(), 0, 0];
                const frame = (now) => {{
                    longest = Math.max(longest, now - before);
                    before = now;
                    quiet = document.documentElement.hasAttribute('data-busy') ? 0 : quiet + 1;
                    if (quiet > 3) done(longest); else requestAnimationFrame(frame);
                }};
                requestAnimationFrame((now) => {{
                    before = now;
                    {script};
                    requestAnimationFrame(frame);
                }});
            }})"
        ));
        longest.as_f64().expect("a number")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
