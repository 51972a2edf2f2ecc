//! What a page in the browser shows. The tests of `cctrace` have this file, too.

use serde_json::json;

use super::browser::Browser;

/// How many elements there are.
pub(crate) fn shown(browser: &mut Browser, selector: &str) -> u64 {
    let number = browser.eval(&format!(
        "document.querySelectorAll({}).length",
        json!(selector)
    ));
    number.as_u64().unwrap()
}

/// The text of the first element.
pub(crate) fn text(browser: &mut Browser, selector: &str) -> String {
    let text = browser.eval(&format!(
        "((it) => it?.innerText ?? it?.textContent)(document.querySelector({}))",
        json!(selector)
    ));
    text.as_str().unwrap_or_default().to_owned()
}
