//! What each view of the page shows of a real program, by the commands that write it.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ccmodel::Machine;
use ccscope::Profile;
use ccscope::profile::Site;
use serde_json::json;
use tempfile::TempDir;

use super::browser::Browser;
use super::page::{small, type_into};
use super::programs::{CCSCOPE, command, compile, is_installed, succeed, text as utf8};
use super::shown::{shown, text};

/// `page.cc` profiled with all its chunks and with windows, and its page.
struct Real {
    folder: TempDir,
    page: PathBuf,
    profile: Profile,
}

impl Real {
    /// The site whose innermost frame of `page.cc` is in this function.
    fn site(&self, function: &str) -> usize {
        let sites = &self.profile.sites;
        let name = |place| &self.profile.frames[place as usize].function;
        let is_it = |site: &Site| site.place.is_some_and(|it| name(it).contains(function));
        sites.iter().position(is_it).unwrap()
    }
}

fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    REAL.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let program = compile(folder.path(), &[CCSCOPE, "c++"], "page.cc", &["-O1", "-g"]);
        let run = "run -q --page --full --rate=20 -o p.ccscope".split(' ');
        succeed(command(CCSCOPE).args(run).arg(program).current_dir(&folder));
        // The caches of this machine may not be known.
        let machine = Machine::preset("zen4-desktop").unwrap().to_json();
        fs::write(folder.path().join("machine"), machine).unwrap();
        let report = "report p.ccscope -o page.html --machine machine".split(' ');
        let output = succeed(command(CCSCOPE).args(report).current_dir(&folder));
        assert_eq!(utf8(&output.stdout), "page in page.html\n");
        let profile = Profile::open(folder.path().join("p.ccscope")).unwrap();
        Real {
            page: folder.path().join("page.html"),
            profile,
            folder,
        }
    })
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in {text:?}");
}

fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let script = format!(
        "[...document.querySelectorAll({})].map((it) => it.innerText ?? it.textContent)",
        json!(selector)
    );
    serde_json::from_value(browser.eval(&script)).unwrap()
}

/// How many pixels of a chart have a colour, and the mean of their distances from the left edge.
fn painted(browser: &mut Browser, label: &str, colour: [u8; 3]) -> (u64, f64) {
    painted_within(browser, label, colour, 2)
}

/// The same of colours that differ by at most `within` in each part.
fn painted_within(browser: &mut Browser, label: &str, colour: [u8; 3], within: u8) -> (u64, f64) {
    let script = format!(
        "(() => {{
            const canvas = document.querySelector('[aria-label=\"{label}\"] canvas');
            const {{ width, height }} = canvas;
            const {{ data }} = canvas.getContext('2d').getImageData(0, 0, width, height);
            let [count, sum] = [0, 0];
            for (let i = 0; i < data.length; i += 4) {{
                const isIt = {colour:?}.every((it, n) => Math.abs(it - data[i + n]) <= {within});
                if (isIt && data[i + 3] === 255) [count, sum] = [count + 1, sum + (i / 4) % width];
            }}
            return [count, sum / count];
        }})()"
    );
    let found = browser.eval(&script);
    (found[0].as_u64().unwrap(), found[1].as_f64().unwrap_or(0.0))
}

const BLOCKS: &str = "Chunks over time";
/// In `style.css`, of the light page.
const MARK: [u8; 3] = [0x0b, 0x0c, 0x0f];
const SMALLEST: [u8; 3] = [0xcf, 0xe0, 0xf7];
const LARGEST: [u8; 3] = [0x1c, 0x4a, 0x99];

#[test]
fn findings_say_what_and_where_the_worst_first() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    for (page, lists) in [(small(), 1), (&real().page, 2)] {
        browser.open(page, "");
        for list in 1..=lists {
            let inside = |what| format!(".list:nth-child({list}) .finding {what}");
            let titles = texts(&mut browser, &inside("h3"));
            let costs = texts(&mut browser, &inside(".cost b"));
            assert_eq!(titles.len(), costs.len());
            // What is only read or only written comes later: the system may be its other user.
            let costs: Vec<f64> = { titles.iter().zip(&costs) }
                .filter(|(title, _)| !title.contains(", never "))
                .map(|(_, text)| text.trim_end_matches(" %").parse().unwrap())
                .collect();
            assert!(
                !costs.is_empty() && costs.is_sorted_by(|a, b| a >= b),
                "{costs:?}"
            );
            for what in [
                ".cost .of",
                "h3 a[href*='site=']",
                ".where code",
                "code.type",
            ] {
                let all = texts(&mut browser, &inside(what));
                assert!(
                    all.len() >= titles.len() && !all.contains(&String::new()),
                    "{all:?}"
                );
            }
        }
    }
    has(
        &texts(&mut browser, ".finding h3").join(";"),
        "Freed late: idle(int);",
    );
    has(
        &texts(&mut browser, ".where").join(";"),
        "page.cc:34 · int · site #",
    );
    browser.act("document.querySelector('.finding h3 a').click()");
    assert_eq!(shown(&mut browser, "h2.site"), 1);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_site_shows_lines_chunks_bytes_and_shares() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let site = real().site("push");
    browser.open(&real().page, &format!("view=site&site={site}"));
    let line = text(&mut browser, ".stack .line.here");
    has(&line, "{ return new Node{list, value, {}}; }");
    assert_eq!(text(&mut browser, "p.type"), "allocates Node");
    let why = texts(&mut browser, ".scores tr");
    assert_eq!(why.len(), 4);
    has(&why[1], "64.0 kB of 64.0 kB touched");
    // The 48 bytes of `unused` are written only.
    let fields = texts(&mut browser, ".bytes th code:first-child");
    assert_eq!(fields, ["next", "value", "unused"]);
    assert_eq!(shown(&mut browser, ".byte.read:not(.never)"), 16);
    assert_eq!(shown(&mut browser, ".byte.write:not(.never)"), 64);
    for chart in [
        BLOCKS,
        "Bytes of the site over time",
        "Chunks by size",
        "Chunks by lifetime",
    ] {
        let canvas = format!("[aria-label='{chart}'] canvas");
        assert_eq!(shown(&mut browser, &canvas), 1, "{chart}");
    }
    let legend = text(&mut browser, "#view .u-legend");
    has(&legend, "this site");
    has(&legend, "touched");
    assert!(painted(&mut browser, BLOCKS, MARK).0 > 100);
    has(&text(&mut browser, "#view"), " of 1,000, a sample.");
    // What is below the pointer is a chunk.
    let site = real().site("idle");
    browser.open(&real().page, &format!("view=site&site={site}"));
    browser.act(
        "const over = document.querySelector('[aria-label=\"Chunks over time\"] .u-over'); \
         const { left, top, width } = over.getBoundingClientRect(); \
         for (let at = 1; document.getElementById('tip').hidden && at < width; at++) \
             over.dispatchEvent(new MouseEvent('mousemove', \
                 { clientX: left + at, clientY: top + 3 }))",
    );
    let tip = text(&mut browser, "#tip");
    has(&tip, "20.0 kB, lived ");
    has(&tip, "0 reads, 1,000 writes");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Figure 3 of S. Byma and J. Larus (2018): in words, and as blocks.
#[test]
fn the_three_patterns_are_recognised() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    for (function, mark) in [
        ("in_a_loop", "allocated in a loop"),
        ("grows", "grows step by step"),
        ("idle", "used for a short part of its life"),
    ] {
        let site = real().site(function);
        browser.open(&real().page, &format!("view=site&site={site}"));
        browser.act("");
        let marks = text(&mut browser, ".facts dd:last-of-type");
        has(&marks, mark);
        let pixels = painted(&mut browser, BLOCKS, MARK).0;
        assert!(pixels > 50, "{function}: {pixels}");
    }
    // Chunks that grow are darker from left to right.
    let site = real().site("grows");
    browser.open(&real().page, &format!("view=site&site={site}"));
    browser.act("");
    // The smallest are a pixel wide, between two of the screen.
    let light = painted_within(&mut browser, BLOCKS, SMALLEST, 28);
    let dark = painted(&mut browser, BLOCKS, LARGEST);
    assert!(
        light.0 > 0 && dark.0 > 0 && light.1 < dark.1,
        "{light:?} {dark:?}"
    );
}

#[test]
fn flame_graphs_have_each_metric_and_a_search() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let Real { page, profile, .. } = real();
    let peak_of = |name| profile.seconds(profile.sites[real().site(name)].peak_time);
    let total = profile.total.allocations;
    let total = format!(" {},{:03}, 100 %", total / 1000, total % 1000);
    for (metric, unit, has_list) in [
        ("peak", "MB, 100 %", true),
        (&format!("at&at={}", peak_of("push")), "kB, 100 %", true),
        (&format!("at&at={}", peak_of("grows")), "MB, 100 %", false),
        ("allocations", &total, true),
        ("misses", "s, 100 %", true),
        // Of the list's, little is shown.
        ("drag", "B*s, 100 %", false),
    ] {
        browser.open(page, &format!("view=flame&metric={metric}"));
        let all = text(&mut browser, ".detail p");
        has(&all, unit);
        let frames = texts(&mut browser, ".flame .frame");
        let is_there = frames.iter().any(|name| name.starts_with("push("));
        assert!(
            is_there == has_list || metric == "drag",
            "{metric}: {frames:?}"
        );
    }
    browser.open(page, "view=flame");
    // The colours are those of the legend.
    assert_eq!(shown(&mut browser, ".legend i"), 12 + 1);
    let strange = browser.eval(
        "(() => {
            const all = [...document.querySelectorAll('.legend i')];
            const known = new Set(all.map((it) => it.style.backgroundColor));
            const fills = [...document.querySelectorAll('.flame .frame')].map((it) =>
                it.style.backgroundColor);
            return [fills.filter((it) => !known.has(it)), new Set(fills).size];
        })()",
    );
    assert_eq!(strange[0], json!([]));
    assert!(strange[1].as_u64().unwrap() > 2, "{strange}");
    browser.act(&type_into("search", "GROWS"));
    assert_eq!(shown(&mut browser, ".flame .marked"), 1);
    assert!(shown(&mut browser, ".flame .frame:not(.marked)") > 1);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn pointers_show_structures_and_misses() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let site = real().site("push");
    browser.open(&real().page, "view=pointers");
    let structure = text(&mut browser, ".structures li");
    let list = format!("List of Node through next, allocated at #{site}; ");
    has(&structure, &list);
    let cells = texts(&mut browser, "#view tbody tr:first-child td");
    assert_eq!(cells[1], "next");
    // Nearly each node is a line that the first cache no longer has; the last has all.
    assert_eq!([&cells[4], &cells[6]], ["100 %", "0 %"]);
    let first: f64 = cells[5].trim_end_matches(" %").parse().unwrap();
    assert!(first > 90.0, "{cells:?}");
    let label = texts(&mut browser, ".graph .edge:first-child text");
    let misses = format!("misses L1 {}, L3 0 %", cells[5]);
    assert_eq!(label, ["next · 100 % followed", &misses]);
    let node = texts(&mut browser, ".graph .node text");
    assert!(
        node[0] == format!("#{site} Node") && node[1].contains("push"),
        "{node:?}"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn curves_are_of_the_process_its_threads_or_its_sites() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let site = format!("#{}", real().site("grows"));
    for (curves, names) in [
        ("process", ["allocated", "touched"]),
        ("threads", ["thread 1", "thread 2"]),
        ("sites", ["all", &site]),
    ] {
        browser.open(&real().page, &format!("curves={curves}"));
        let legend = texts(&mut browser, "#time .u-legend .u-label");
        let has = |name: &&str| legend.iter().any(|it| it == name);
        assert!(names.iter().all(has), "{curves}: {legend:?}");
    }
}

/// After the list is gone: no view has it. What is of the whole run all the same is said.
#[test]
fn a_span_filters_each_view() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let Real { page, profile, .. } = real();
    let list = real().site("push");
    let from = profile.seconds(profile.sites[real().site("grows")].first_time);
    for (fragment, selector, whole) in [
        ("view=sites", "tr[data-site]", "the numbers of the table"),
        ("view=flame&metric=allocations", ".frame", ""),
        ("view=flame&metric=misses", ".frame", "misses"),
        ("view=flame&metric=drag", ".frame", "drag"),
        ("view=findings", ".finding", "what each finding costs"),
        ("view=pointers", "#view tr", "loads and misses"),
    ] {
        let mut frames = Vec::new();
        for span in ["", &format!("&from={from}")] {
            browser.open(page, &format!("{fragment}{span}"));
            frames.push(texts(&mut browser, selector));
        }
        let [all, some] = [&frames[0], &frames[1]];
        assert!(
            some.len() < all.len() || whole == "drag",
            "{fragment}: {all:?}, {some:?}"
        );
        assert!(
            !some.iter().any(|it| it.contains("push(")),
            "{fragment}: {some:?}"
        );
        let said = text(&mut browser, "#span");
        assert!(said.starts_with("Sites with bytes from "), "{said}");
        let end = format!(" of the whole run: {whole}.");
        let end = if whole.is_empty() { "s." } else { &end };
        assert!(said.ends_with(end), "{said}");
    }
    browser.open(page, &format!("view=site&site={list}"));
    assert_eq!(text(&mut browser, "#span"), "");
    assert!(painted(&mut browser, BLOCKS, MARK).0 > 0);
    browser.open(page, &format!("view=site&site={list}&from={from}"));
    assert_eq!(shown(&mut browser, "[aria-label='Chunks over time']"), 0);
    has(
        &text(&mut browser, "#view"),
        "no chunk of this site in the span",
    );
}

#[test]
fn a_page_takes_at_most_350_kilobytes_and_its_data() {
    let page = fs::read_to_string(&real().page).unwrap();
    let (shell, data) = page.split_once("id=\"data\">").unwrap();
    assert!(
        shell.len() <= 350_000 && data.len() < 200_000,
        "{} and {}",
        shell.len(),
        data.len()
    );
}

/// Profiles of other tools, which lack accesses and chunks.
#[test]
fn pages_are_made_of_files_of_other_tools() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["c++"], "page.cc", &["-O1", "-g"]);
    let in_folder = |words: &[&str]| {
        let mut it = command(words[0]);
        it.args(&words[1..]).current_dir(folder.path());
        it
    };
    let program = program.to_str().unwrap();
    for words in [
        &["valgrind", "--tool=dhat", "--dhat-out-file=dhat", program][..],
        &["heaptrack", "-o", "heaptrack", program],
    ] {
        if !is_installed(words[0]) {
            continue;
        }
        succeed(&mut in_folder(words));
        let files = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
        let names = ["dhat", "heaptrack", "heaptrack.zst", "heaptrack.gz"];
        let is_it = |path: &PathBuf| names.iter().any(|name| path.ends_with(name));
        let file = files
            .filter(is_it)
            .max_by_key(|it| it.to_str().unwrap().contains(words[0]));
        let file = file.unwrap();
        succeed(&mut in_folder(&[CCSCOPE, "report", file.to_str().unwrap()]));
        let page = file.with_extension("html");
        for (view, selector) in [
            ("sites", "tr[data-site]"),
            ("flame", ".frame"),
            ("site&site=0", "h2.site"),
            ("pointers", "#view p"),
            ("findings", "#view p"),
        ] {
            browser.open(&page, &format!("view={view}"));
            assert!(shown(&mut browser, selector) > 0, "{}: {view}", words[0]);
        }
        browser.open(&page, "view=sites&fn=in_a_loop");
        let row = text(&mut browser, "tr[data-site]");
        has(&row, "\t200\t");
        has(&row, "page.cc:22");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A page is not written over what it is of, and not where there is no folder.
#[test]
fn reports_are_refused_in_a_line() {
    let folder = real().folder.path();
    let beside = fs::read_to_string(folder.join("p.html")).unwrap();
    assert!(beside.starts_with("<!doctype html>"), "{}", &beside[..99]);
    for (words, line) in [
        (
            ["p.ccscope", "-o", "p.ccscope"],
            "p.ccscope is the profile itself",
        ),
        (["p.ccscope", "-o", "no/such"], "cannot write no/such: "),
        (["none", "-o", "none.html"], "none: No such file"),
        (["page.html", "-o", "none.html"], "page.html"),
        (
            ["p.ccscope", "--machine", "none"],
            "cannot read machine none: ",
        ),
    ] {
        let mut report = command(CCSCOPE);
        let output = report
            .arg("report")
            .args(words)
            .current_dir(folder)
            .output()
            .unwrap();
        let err = utf8(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.starts_with(&format!("ccscope: {line}")), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    assert!(Profile::open(folder.join("p.ccscope")).is_ok());
    assert!(!folder.join("none.html").exists());
}

/// The colours of the scores, and the one for none, as people see them who lack a kind of cones.
#[test]
fn colours_differ_for_colour_blind_people() {
    let source = include_str!("../../page/colours.js");
    let colours: Vec<[f64; 3]> = (source.split('"').filter(|it| it.starts_with('#')).take(13))
        .map(|hex| {
            [1, 3, 5].map(|at| {
                let part = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
                if part <= 0.040_45 {
                    part / 12.92
                } else {
                    ((part + 0.055) / 1.055).powf(2.4)
                }
            })
        })
        .collect();
    assert_eq!(colours.len(), 13);
    let times = |matrix: &[[f64; 3]; 3], colour: [f64; 3]| {
        matrix.map(|row| row.iter().zip(colour).map(|(a, b)| a * b).sum::<f64>())
    };
    // CIE 1976 under D65.
    let lab = |colour: [f64; 3]| {
        let xyz = times(
            &[
                [0.412_456, 0.357_576, 0.180_438],
                [0.212_673, 0.715_152, 0.072_175],
                [0.019_334, 0.119_192, 0.950_304],
            ],
            colour,
        );
        let white = [0.950_47, 1.0, 1.088_83];
        let [x, y, z] = [0, 1, 2].map(|i| match xyz[i] / white[i] {
            part if part > 0.008_856 => part.cbrt(),
            part => 7.787 * part + 16.0 / 116.0,
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    };
    // Of Machado et al. (2009), at full severity: all three cones, then without each.
    for seen in [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ] {
        let see = |&colour| lab(times(&seen, colour).map(|part: f64| part.clamp(0.0, 1.0)));
        let labs: Vec<[f64; 3]> = colours.iter().map(see).collect();
        for (i, a) in labs.iter().enumerate() {
            for b in &labs[..i] {
                let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
                let distance = squares.sum::<f64>().sqrt();
                assert!(distance >= 10.0, "{i}: {distance}");
            }
        }
    }
}
