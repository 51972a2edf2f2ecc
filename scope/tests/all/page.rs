//! The page of `ccscope report` in a real browser.

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ccmodel::Machine;
use ccscope::analyses::diff::{Diff, diff};
use ccscope::imports;
use ccscope::profile::{Chunk, Edge, Footprint, Leaks, Link, Profile, Region, RegionKind};
use ccscope::views::{Options, page};
use serde_json::json;
use tempfile::TempDir;

use crate::browser::Browser;
use crate::page_profile;
use crate::shown::{shown, text};

/// Writes the page of a profile.
fn write(folder: &TempDir, profile: &Profile, chunks: u64) -> PathBuf {
    write_since(folder, profile, None, chunks)
}

fn write_since(
    folder: &TempDir,
    profile: &Profile,
    since: Option<(&Profile, &Diff)>,
    chunks: u64,
) -> PathBuf {
    let path = folder.path().join("page.html");
    let blocks = page_profile::chunks(profile, chunks).map(Ok::<Vec<Chunk>, Infallible>);
    let rule = (8, "+10 size 16 near <b>rbx</b>".to_owned());
    let options = Options {
        rules: [rule].into(),
        ..Options::default()
    };
    let html = page::to_html(profile, since, blocks, &options).unwrap();
    fs::write(&path, html).unwrap();
    path
}

/// The page of a profile of 400 sites, for the tests that change nothing in it.
pub(super) fn small() -> &'static PathBuf {
    static PAGE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let made = || {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &page_profile::profile(400), 40_000);
        (folder, path)
    };
    &PAGE.get_or_init(made).1
}

pub(super) fn type_into(id: &str, text: &str) -> String {
    format!(
        "const it = document.getElementById({}); it.value = {}; \
         it.dispatchEvent(new Event('input'))",
        json!(id),
        json!(text)
    )
}

#[test]
fn every_view_opens_without_complaint_and_without_network() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let views = [
        ("", ".finding"),
        ("view=flame", ".flame .frame"),
        (
            "view=flame&metric=allocations&callers=1&form=flame",
            ".flame .frame",
        ),
        ("view=sites", "tr[data-site]"),
        ("view=site&site=3", "table.scores"),
        ("view=pointers", ".graph .node"),
        ("view=about", ".licences"),
    ];
    for (fragment, selector) in views {
        browser.open(small(), fragment);
        assert!(
            shown(&mut browser, selector) > 0,
            "{fragment}: no {selector}"
        );
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser
        .requests
        .retain(|url| !url.starts_with("file://") && url != "about:blank");
    assert_eq!(browser.requests, Vec::<String>::new());
}

#[test]
fn filters_hold_in_all_views_and_in_the_link() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(small(), "view=sites");
    let all = shown(&mut browser, "tr[data-site]");
    browser.act(&type_into("fn", "MODULE_1::"));
    let some = shown(&mut browser, "tr[data-site]");
    assert!(0 < some && some < all, "{some} of {all}");
    let matches = text(&mut browser, "#matches");
    assert!(
        matches.starts_with(&format!("{some} of 400 sites")),
        "{matches}"
    );
    // By type, thread and time, each of which leaves less.
    let mut before = 400;
    for (fragment, what) in [
        ("type=Element7", "type"),
        ("thread=2", "thread"),
        ("to=1", "time"),
    ] {
        browser.open(small(), &format!("view=flame&{fragment}"));
        let matches = text(&mut browser, "#matches");
        let number: u64 = matches.split(' ').next().unwrap().parse().unwrap();
        assert!(0 < number && number < 400, "{what}: {matches}");
        before = before.min(number);
    }
    // What was chosen is in the address, and comes back from it.
    browser.open(small(), "view=sites&sort=allocations");
    browser.act(&type_into("fn", "module_1::"));
    let fragment = browser.eval("location.hash.slice(1)");
    browser.open(small(), fragment.as_str().unwrap());
    assert_eq!(shown(&mut browser, "tr[data-site]"), some, "{fragment}");
    assert_eq!(
        browser.eval("document.getElementById('fn').value"),
        "module_1::"
    );
    browser.act("document.getElementById('clear').click()");
    assert_eq!(text(&mut browser, "#matches"), "all 400 sites");
}

/// What a link asks for and the profile does not have is as if it had not been asked.
#[test]
fn links_that_make_no_sense_show_the_defaults() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    for fragment in [
        "view=nothing&curves=x&theme=pink&thread=77&from=then&to=-1&at=never",
        "view=site&site=400",
        "view=site&site=%3Cb%3E",
        "view=site&site=-1",
        "view=site",
        "view=changes",
        "view=leaks",
        "view=constructor&sort=__proto__",
    ] {
        browser.open(small(), fragment);
        assert!(shown(&mut browser, ".finding") > 0, "{fragment}");
        let matches = text(&mut browser, "#matches");
        assert_eq!(matches, "all 400 sites", "{fragment}");
        assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Findings");
        assert_eq!(text(&mut browser, "#time [aria-pressed=true]"), "process");
    }
    browser.open(small(), "view=flame&metric=weight&form=round&zoom=x");
    assert!(shown(&mut browser, ".flame .frame") > 0);
    assert_eq!(text(&mut browser, "#view [aria-pressed=true]"), "peak");
    assert_eq!(shown(&mut browser, "#view [aria-pressed=true]"), 3);
    browser.open(small(), "view=sites&sort=name");
    assert_eq!(shown(&mut browser, "[aria-sort=descending]"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_page_shows_what_has_changed() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut old = page_profile::profile(400);
    let hostile = "<img src=x onerror=alert(1)>";
    old.run.command = vec![hostile.to_owned()];
    old.frames[0].file = hostile.to_owned();
    old.total.usable = 100_000_000;
    let mut new = old.clone();
    new.sites[7].peak_usable += 1_000_000;
    new.sites[8].peak_usable += 2_000_000;
    new.sites[9].drag = 0.0;
    old.sites[9].drag = 1e15;
    new.sites.pop();
    let changes = diff(&old, &new, Machine::this());
    let folder = TempDir::new().unwrap();
    let page = write_since(&folder, &new, Some((&old, &changes)), 4000);
    browser.open(&page, "");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Changes");
    assert!(text(&mut browser, "main").starts_with(&format!("Compared with {hostile}")));
    for (verdict, rows) in [("worse", 2), ("better", 1), ("gone", 1), ("new", 0)] {
        let selector = format!("[data-verdict={verdict}] tbody tr");
        assert_eq!(shown(&mut browser, &selector), rows, "{verdict}");
    }
    let worst = text(&mut browser, "[data-verdict=worse] tbody tr");
    assert!(worst.starts_with("#8>#8\t+2.00 MB"), "{worst}");
    assert!(text(&mut browser, "#time .u-legend").contains("allocated before"));
    // Filters hold here, too, and the site has its old curve.
    browser.act("document.querySelector('[data-verdict=worse] a').click()");
    assert!(text(&mut browser, "#view .u-legend").contains("before"));
    let facts = text(&mut browser, "#view .facts");
    assert!(facts.contains("worse: +2.00 MB at the peak"), "{facts}");
    assert!(facts.contains("+10 size 16 near <b>rbx</b>"), "{facts}");
    browser.open(&page, "fn=no-such");
    assert_eq!(shown(&mut browser, "[data-verdict=worse]"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn leaks_are_shown_with_what_leads_to_them() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut profile = page_profile::profile(50);
    let leak = |site, bytes, indirect_bytes| Leaks {
        site,
        chunks: bytes / 10,
        bytes,
        indirect_chunks: indirect_bytes / 10,
        indirect_bytes,
    };
    let link = |from, to, pointers| Link { from, to, pointers };
    profile.leaks = vec![
        leak(None, 5000, 20),
        leak(Some(7), 3000, 0),
        leak(Some(3), 2000, 20),
    ];
    profile.links = vec![
        link(None, 3, 1),
        link(Some(9), 3, 40),
        link(Some(3), 3, 20),
        link(Some(2), 3, 1),
        link(Some(9), 8, 5),
    ];
    let folder = TempDir::new().unwrap();
    let page = write(&folder, &profile, 500);
    browser.open(&page, "view=leaks");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Leaks");
    let about = text(&mut browser, "#view .about");
    let sums = "5.00 kB in 500 chunks that nothing led to when the program ended, and 20 B in 2 ";
    assert!(about.starts_with(sums), "{about}");
    assert_eq!(shown(&mut browser, "table.leaks tbody tr"), 2);
    let row = text(&mut browser, "tr[data-site='7']");
    assert!(row.starts_with("#7\t3.00 kB\t300\t0 B\t0\t"), "{row}");
    assert!(row.contains("\tnothing\t"), "{row}");
    let row = text(&mut browser, "tr[data-site='3']");
    assert!(row.starts_with("#3\t2.00 kB\t200\t20 B\t2\t"), "{row}");
    assert!(
        row.contains("\t#9 (40), itself (20), variables (1), …\t"),
        "{row}"
    );
    browser.open(&page, "view=leaks&fn=no-such");
    assert_eq!(shown(&mut browser, "table.leaks"), 0);
    browser.open(&page, "view=leaks");
    browser.act("document.querySelector('tr[data-site=\"3\"] a').click()");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Site #3");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_span_of_time_is_brushed() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(small(), "view=sites");
    let over = browser
        .eval("JSON.stringify(document.querySelector('#time .u-over').getBoundingClientRect())");
    let over: serde_json::Value = serde_json::from_str(over.as_str().unwrap()).unwrap();
    let number = |key: &str| over[key].as_f64().unwrap();
    let y = number("y") + number("height") / 2.0;
    let mouse = |kind: &str, part: f64| {
        let x = number("x") + number("width") * part;
        json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 })
    };
    for (kind, part) in [
        ("mousePressed", 0.2),
        ("mouseMoved", 0.3),
        ("mouseReleased", 0.3),
    ] {
        browser.call("Input.dispatchMouseEvent", mouse(kind, part));
    }
    browser.act("");
    let from = browser.eval("Number(new URLSearchParams(location.hash.slice(1)).get('from'))");
    let to = browser.eval("Number(new URLSearchParams(location.hash.slice(1)).get('to'))");
    let [from, to] = [from, to].map(|it| it.as_f64().unwrap());
    assert!(
        (1.5..2.5).contains(&from) && (2.5..3.5).contains(&to),
        "{from} to {to}"
    );
    assert!(text(&mut browser, "#matches").contains(" of 400 sites"));
}

/// Each frame lies within its caller, in the next row, in a part of its width.
#[test]
fn frames_stand_on_their_callers() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    for (form, towards) in [("icicle", "top"), ("flame", "bottom")] {
        browser.open(
            small(),
            &format!("view=flame&metric=allocations&form={form}"),
        );
        let found = browser.eval(&format!(
            "(() => {{
                const all = [...document.querySelectorAll('.flame .frame')];
                const at = all.map((it) => it.getBoundingClientRect());
                const outer = document.querySelector('.flame').getBoundingClientRect();
                const row = (it) => Math.round(Math.abs(it.{towards} - outer.{towards}) / 20);
                const isOn = (it) => at.some((up) => row(up) === row(it) - 1
                    && up.left <= it.left + 0.1 && it.right <= up.right + 0.1);
                const alone = at.filter((it) => row(it) > 0 && !isOn(it));
                const over = at.filter((a, i) => at.some((b, j) => i < j && row(a) === row(b)
                    && a.left < b.right - 0.1 && b.left < a.right - 0.1));
                const bad = all.filter((it) => it.textContent && it.clientWidth < 30);
                return [all.length, alone.length, over.length, bad.length,
                    at[0].width === outer.width, Math.max(...at.map(row))];
            }})()"
        ));
        assert_eq!(found[4], true, "{form}: {found}");
        assert_eq!(
            [&found[1], &found[2], &found[3]],
            [0, 0, 0],
            "{form}: {found}"
        );
        assert!(found[0].as_u64() > Some(100), "{form}: {found}");
        assert!(found[5].as_u64() > Some(5), "{form}: {found}");
    }
    // The name that does not fit is in the box beside the pointer.
    browser.act(
        "document.querySelectorAll('.flame .frame')[5].dispatchEvent( \
         new MouseEvent('mousemove', { clientX: 300, clientY: 500, bubbles: true }))",
    );
    let tip = text(&mut browser, "#tip");
    assert!(tip.contains("::method_") && tip.contains(" %"), "{tip}");
}

#[test]
fn frames_are_zoomed_by_mouse_and_by_keys() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(small(), "view=flame&metric=allocations");
    let before = shown(&mut browser, ".flame .frame");
    let third = "document.querySelectorAll('.flame .frame')[3]";
    browser.act(&format!(
        "{third}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
    ));
    // It is as wide as the graph.
    let wide = "Number(getComputedStyle(document.querySelector('.flame .chosen')).width \
        .slice(0, -2)) / document.querySelector('.flame').clientWidth";
    assert_eq!(browser.eval(wide), 1);
    let zoom = browser.eval("new URLSearchParams(location.hash.slice(1)).get('zoom')");
    assert!(
        zoom.as_str().is_some_and(|it| it.parse::<u64>().is_ok()),
        "{zoom}"
    );
    assert!(shown(&mut browser, ".flame .above") > 0);
    assert!(text(&mut browser, ".detail").contains("method_"));
    let press = |key: &str| {
        format!(
            "document.querySelector('.flame').dispatchEvent(new KeyboardEvent('keydown', \
             {{ key: '{key}', bubbles: true }}))"
        )
    };
    browser.act(&press("Escape"));
    assert_eq!(shown(&mut browser, ".flame .frame"), before);
    browser.act(&press("ArrowDown"));
    assert_eq!(shown(&mut browser, ".flame .chosen"), 1);
    // To a frame beside it, into it, and back.
    let chosen = "document.querySelector('.flame .chosen').dataset.at";
    browser.act(&press("ArrowDown"));
    let first = browser.eval(chosen);
    browser.act(&press("ArrowRight"));
    assert_ne!(browser.eval(chosen), first);
    browser.act(&press("ArrowLeft"));
    assert_eq!(browser.eval(chosen), first);
    browser.act(&press("ArrowUp"));
    assert_ne!(browser.eval(chosen), first);
    browser.act(&press("ArrowDown"));
    assert_eq!(browser.eval(chosen), first);
    browser.act(&press("Enter"));
    assert!(
        browser
            .eval("location.hash.includes('zoom=')")
            .as_bool()
            .unwrap()
    );
    browser.act(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '3', bubbles: true }))",
    );
    assert!(shown(&mut browser, "tr[data-site]") > 0);
}

/// A profile whose sites 0 to 5 point to each other: twice to itself, twice to the same, over
/// another, in a cycle, and apart from the rest.
fn with_pointers() -> Profile {
    let mut profile = page_profile::profile(50);
    let pointers = [
        (0, 0, 0),
        (0, 8, 0),
        (0, 16, 1),
        (0, 24, 1),
        (1, 0, 2),
        (0, 0, 2),
        (2, 8, 3),
        (3, 8, 1),
        (4, 0, 5),
    ];
    let edge = |(i, &(from, offset, to)): (usize, &(u32, u32, u32))| Edge {
        from,
        offset,
        to,
        loads: 1000 - 100 * i as u64,
        followed: 500 - 50 * i as u64,
    };
    profile.edges = pointers.iter().enumerate().map(edge).collect();
    profile
}

#[test]
fn pointers_are_arrows_between_boxes() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let page = write(&folder, &with_pointers(), 500);
    browser.open(&page, "view=pointers");
    assert_eq!(shown(&mut browser, ".graph .node"), 6);
    assert_eq!(shown(&mut browser, ".graph .edge"), 9);
    let node = text(&mut browser, ".graph .node[data-site='4']");
    assert!(node.starts_with("#4 Vec<program::Element"), "{node}");
    let labels = "[data-from='1'][data-to='2'] text";
    assert_eq!(text(&mut browser, labels), "field_0 · 50 % followed");
    // Nothing covers a box or a label, no arrow crosses a box, and each head is at its box.
    let found = browser.eval(
        "(() => {
            const all = (selector) => [...document.querySelectorAll('.graph ' + selector)];
            const groups = [...all('.node'), ...all('.edge')];
            const parts = groups.map((group) => [...group.querySelectorAll('rect, text')]
                .filter((it) => it.tagName === 'rect' || group.matches('.edge'))
                .map((it) => it.getBoundingClientRect()));
            const meet = (a, b) => a.left < b.right && b.left < a.right
                && a.top < b.bottom && b.top < a.bottom;
            const covered = parts.flatMap((own, i) => parts.slice(i + 1).map((other, j) =>
                own.some((a) => other.some((b) => meet(a, b)))
                    ? [groups[i].textContent, groups[i + 1 + j].textContent] : null))
                .filter((it) => it);
            const boxes = all('.node rect').map((it) => it.getBBox());
            const crossing = all('.edge path:not(.head)').filter((path) => {
                for (let at = 0; at < path.getTotalLength(); at += 2) {
                    const { x, y } = path.getPointAtLength(at);
                    const isIn = (box) => x > box.x + 1 && x < box.x + box.width - 1
                        && y > box.y + 1 && y < box.y + box.height - 1;
                    if (boxes.some(isIn)) return true;
                }
                return false;
            });
            const rectOf = (site) => all(`.node[data-site='${site}'] rect`)[0].getBBox();
            const off = all('.edge').filter((edge) => {
                const tip = edge.querySelector('.head').getPointAtLength(0);
                const { x, y, width, height } = rectOf(edge.dataset.to);
                const isBeside = Math.min(Math.abs(tip.x - x), Math.abs(tip.x - x - width)) < 1
                    && tip.y > y && tip.y < y + height;
                return !isBeside && !(Math.abs(tip.y - y) < 1 && tip.x > x && tip.x < x + width);
            });
            const columns = [0, 1, 2, 3, 4, 5].map((site) => rectOf(site).x);
            return [covered, crossing.length, off.length, columns];
        })()",
    );
    assert_eq!(found[0], json!([]));
    assert_eq!([&found[1], &found[2]], [0, 0], "{found}");
    // From left to right; only the arrow that closes the cycle points back.
    let left: Vec<f64> = serde_json::from_value(found[3].clone()).unwrap();
    assert!(
        left[0] < left[1] && left[1] < left[2] && left[2] < left[3],
        "{left:?}"
    );
    assert!(left[4] < left[5], "{left:?}");
    // What is loaded more often is wider.
    let widths = browser.eval(
        "[...document.querySelectorAll('.graph .edge path[stroke-width]')] \
         .map((it) => Number(it.getAttribute('stroke-width'))).sort((a, b) => b - a)",
    );
    assert_eq!(widths[0], 5);
    assert!(widths[8].as_f64() < Some(4.7), "{widths}");
    browser.act(
        "document.querySelector('.graph .edge text').dispatchEvent( \
         new MouseEvent('mousemove', { clientX: 300, clientY: 500, bubbles: true }))",
    );
    let tip = text(&mut browser, "#tip");
    assert!(tip.contains(" followed") && tip.contains(" loads"), "{tip}");
    // A box leads to its site, by mouse and by key.
    let at = browser.eval(
        "(() => { const node = document.querySelector('.graph .node[data-site=\"4\"]'); \
         node.scrollIntoView({ block: 'center' }); \
         const { left, top } = node.getBoundingClientRect(); return [left + 9, top + 9]; })()",
    );
    for kind in ["mousePressed", "mouseReleased"] {
        let event = json!({
            "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1,
        });
        browser.call("Input.dispatchMouseEvent", event);
    }
    browser.act("");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Site #4");
    browser.open(&page, "view=pointers");
    browser.act("document.querySelector('.graph .node[data-site=\"5\"]').focus()");
    for kind in ["keyDown", "keyUp"] {
        let event = json!({
            "type": kind, "key": "Enter", "windowsVirtualKeyCode": 13, "text": "\r",
        });
        browser.call("Input.dispatchKeyEvent", event);
    }
    browser.act("");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Site #5");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// On paper, the whole drawing is there.
#[test]
fn graphs_fit_on_paper() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(small(), "view=pointers");
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    browser.act("dispatchEvent(new Event('beforeprint'))");
    let [inner, outer] = [".graph svg", ".graph"].map(|selector| {
        let width = format!("document.querySelector('{selector}').getBoundingClientRect().width");
        browser.eval(&width).as_f64().unwrap()
    });
    assert!(inner <= outer && outer <= 700.0, "{inner} in {outer}");
}

#[test]
fn controls_keep_the_focus_and_paper_is_light() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(small(), "view=flame&theme=dark");
    for key in ["sites", "flame"] {
        let control = format!("document.querySelector('#tabs [data-key={key}]')");
        browser.act(&format!("{control}.focus(); {control}.click()"));
        let kept = browser.eval(&format!("document.activeElement === {control}"));
        assert_eq!(kept, true, "{key}");
    }
    assert!(shown(&mut browser, ".u-legend th[tabindex='0']") > 1);
    let widest = "Math.max(...Array.from(document.querySelectorAll('.uplot, .flame'), \
        (it) => it.getBoundingClientRect().width))";
    assert!(browser.eval(widest).as_f64().unwrap() > 1000.0);
    browser.act("dispatchEvent(new Event('beforeprint'))");
    assert!(browser.eval(widest).as_f64().unwrap() <= 700.0);
    let theme = "document.documentElement.dataset.theme";
    assert_eq!(browser.eval(theme), "light");
    browser.act("dispatchEvent(new Event('afterprint'))");
    assert!(browser.eval(widest).as_f64().unwrap() > 1000.0);
    assert_eq!(browser.eval(theme), "dark");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Files of other tools have no threads, times, accesses and types.
#[test]
fn what_is_not_known_is_left_out() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("dhat");
    let text_of_file = r#"{"dhatFileVersion":2,"mode":"rust-heap","verb":"Allocated","bklt":true,
        "bkacc":false,"tu":"instrs","Mtu":"Minstr","cmd":"program","pid":7,"te":900,"tg":500,
        "ftbl":["[root]","0x1: main (a.rs:3)"],"pps":[{"tb":80,"tbk":10,"tl":70,"mb":8,"mbk":1,
        "gb":8,"gbk":1,"eb":0,"ebk":0,"fs":[1]}]}"#;
    fs::write(&file, text_of_file).unwrap();
    let page = write(&folder, &imports::open(file).unwrap(), 0);
    for view in ["", "flame", "sites", "about", "site&site=0"] {
        browser.open(&page, &format!("view={view}"));
        let unknown = "dd:empty, td:empty, td .score, #time > *, #thread, #from";
        assert_eq!(shown(&mut browser, unknown), 0, "{view}");
        let all = text(&mut browser, "body");
        for word in [" 0 s", "0 threads", "0 events", "Pointers"] {
            assert!(!all.contains(word), "{view}: {word} in {all}");
        }
    }
    assert!(text(&mut browser, "#view").contains("7 events on average"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Names that would be markup, script, or other lines.
#[test]
fn hostile_names_are_shown_as_they_are() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let names = [
        "</script><script>globalThis.hacked = 1</script>",
        "<img src=x onerror=\"globalThis.hacked = 1\">",
        "'\"><svg/onload=globalThis.hacked=1>",
        "</pre></template>{{data}}<!--",
        "a\u{2028}b\u{2029}c\u{202e}d\0\u{1b}[2J",
        "__proto__",
        "javascript:globalThis.hacked=1",
        "${globalThis.hacked = 1}`",
    ];
    let mut profile = page_profile::profile(50);
    for (i, frame) in profile.frames.iter_mut().enumerate() {
        frame.function = names[i % names.len()].to_owned();
        frame.file = format!("/{}/{i}.rs", names[(i + 1) % names.len()]);
        frame.module = names[(i + 2) % names.len()].to_owned();
    }
    for (i, of) in profile.types.iter_mut().enumerate() {
        of.name = names[i % names.len()].to_owned();
        of.fields[0].name = names[(i + 3) % names.len()].to_owned();
        of.fields[0].type_name = names[(i + 4) % names.len()].to_owned();
    }
    profile.run.command = names.map(str::to_owned).to_vec();
    profile.run.caveats = names.map(str::to_owned).to_vec();
    profile.run.machine = names[1].to_owned();
    profile.run.compiler = names[0].to_owned();
    let folder = TempDir::new().unwrap();
    let page = write(&folder, &profile, 500);
    let views = [
        "",
        "view=flame",
        "view=flame&callers=1",
        "view=sites",
        "view=site&site=1",
        "view=pointers",
        "view=about",
        "fn=%3Cimg&view=sites&search=%3Cb%3E",
        "site=<b>&view=site",
    ];
    for view in views {
        browser.open(&page, view);
        assert!(
            browser
                .eval("globalThis.hacked === undefined")
                .as_bool()
                .unwrap(),
            "{view}"
        );
        // Nothing but what the page itself has.
        let strange = "document.querySelectorAll('body script:not([type]), main img, main script, \
            main template, header img, [onerror], [onload]').length";
        assert_eq!(
            browser.eval(strange),
            1,
            "only the library is a script: {view}"
        );
    }
    browser.open(&page, "view=about");
    let shown = text(&mut browser, "main");
    assert!(
        shown.contains(names[0]) && shown.contains("a\\u{2028}b"),
        "{shown}"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// As many chunks and sites as the page is made for.
#[test]
#[ignore = "takes long: CI runs it"]
fn ten_million_chunks_open() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let profile = page_profile::profile(100_000);
    let folder = TempDir::new().unwrap();
    let page = write(&folder, &profile, 10_000_000);
    browser.open(&page, "view=sites&sort=allocations");
    assert_eq!(text(&mut browser, "#matches"), "all 100,000 sites");
    browser.act(&type_into("fn", "Type77>"));
    let matches = text(&mut browser, "#matches");
    assert!(matches.ends_with(" of 100,000 sites"), "{matches}");
    assert!(shown(&mut browser, "tr[data-site]") > 0);
}

/// A caller of 4 MB with 1000 calls of a region whose name is markup, and a span.
fn with_regions() -> Profile {
    let region = |parent, name: &str, invocations: u64, bytes: u64| {
        let footprint = |unit| Footprint {
            total: invocations * bytes / unit,
            max: bytes / unit,
        };
        let mut footprints = vec![0; 48];
        footprints[20] = 1;
        Region {
            parent,
            kind: RegionKind::Function,
            name: name.to_owned(),
            level: 1,
            invocations,
            reads: invocations * bytes / 8,
            bytes: footprint(1),
            blocks: footprint(64),
            pages: footprint(4096),
            reused: (invocations * bytes).saturating_sub(4_000_000),
            footprints,
            growth: vec![bytes, 0, 0, 0],
            step: 1 << 16,
            ..Region::default()
        }
    };
    let mut profile = page_profile::profile(0);
    profile.regions = vec![
        region(None, "thread", 1, 4_000_000),
        region(Some(0), "outer", 1, 4_000_000),
        region(Some(1), "<img src=x onerror=alert(1)>", 1000, 100_000),
        Region {
            kind: RegionKind::Span,
            ..region(Some(1), "request", 10, 40_000)
        },
    ];
    profile
}

#[test]
fn regions_have_a_graph_a_table_and_findings() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let machine = Machine::preset("zen4-desktop").unwrap();
    let options = Options {
        machine: Some(machine),
        ..Options::default()
    };
    let path = folder.path().join("page.html");
    let chunks = std::iter::empty::<Result<Vec<Chunk>, Infallible>>();
    let html = page::to_html(&with_regions(), None, chunks, &options).unwrap();
    fs::write(&path, html).unwrap();
    browser.open(&path, "");
    assert_eq!(text(&mut browser, "#tabs"), "Regions\nAbout");
    assert_eq!(shown(&mut browser, ".regions .region"), 4);
    assert_eq!(shown(&mut browser, "#view button.link"), 4);
    assert_eq!(shown(&mut browser, "img"), 0, "a name is no markup");
    let found = text(&mut browser, ".findings");
    assert!(
        found.contains("block it: outer takes 4.00 MB of cache a call"),
        "{found}"
    );
    // Boxes lie within their caller's.
    let within = browser.eval(
        "(() => { const all = [...document.querySelectorAll('.regions .region')]; \
         const at = all.map((it) => it.getBoundingClientRect()); \
         return at.every((it) => it.left >= at[0].left - 1 && it.right <= at[0].right + 1); })()",
    );
    assert_eq!(within, json!(true));
    browser.open(&path, "region=3");
    assert_eq!(text(&mut browser, "#view h3"), "[request]");
    let facts = text(&mut browser, "#view dl.facts");
    assert!(
        facts.contains("40.0 kB, at most 40.0 kB") && facts.contains("L2"),
        "{facts}"
    );
    browser.act("document.querySelectorAll('.regions .region')[2].click()");
    assert!(text(&mut browser, "#view h3").contains("onerror"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}
