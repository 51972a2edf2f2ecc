//! The pages of a traced program: the profile, what the tool says of it, and the picture in a
//! browser.

use std::convert::Infallible;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::sync::OnceLock;

use ccscope::analyses::pages::{MappingUse, by_mapping};
use ccscope::profile::{Chunk, Exit, Mapping, PAGE, PARTS, PageUse};
use ccscope::views::{Options, page};
use ccscope::{Profile, store};
use serde_json::Value;
use tempfile::TempDir;

use super::browser::Browser;
use super::programs::{TRACE, command, compile, succeed, text as utf8};
use super::shown::{shown, text};

/// The program of MadT's use case, traced.
struct Traced {
    folder: TempDir,
    said: String,
    profile: Profile,
}

impl Traced {
    fn mapping(&self, name: &str) -> MappingUse<'_> {
        let mut all = by_mapping(&self.profile).into_iter();
        let found = all.find(|it| it.mapping.name == name && it.touched > 0);
        found.unwrap_or_else(|| panic!("no {name}: {:?}", self.profile.mappings))
    }

    fn page(&self) -> PathBuf {
        self.folder.path().join("page.html")
    }
}

/// Runs `ccscope` in this process on files of the folder, which are named without it.
fn ccscope(folder: &Path, words: &[&str]) -> Output {
    let of_folder = |word: &&str| match word.ends_with(".ccscope") || word.ends_with(".html") {
        true => folder.join(word).into_os_string(),
        false => word.into(),
    };
    let words = ["ccscope"].iter().chain(words).map(of_folder);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = ccscope::cli::run(words, &mut out, &mut err);
    let prefix = format!("{}/", folder.display());
    let [stdout, stderr] = [out, err].map(|it| utf8(&it).replace(&prefix, "").into_bytes());
    Output {
        status: ExitStatus::from_raw(i32::from(code) << 8),
        stdout,
        stderr,
    }
}

fn traced() -> &'static Traced {
    static TRACED: OnceLock<Traced> = OnceLock::new();
    TRACED.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let program = compile(folder.path(), &["cc"], "trace-disparity.c", &["-O0", "-g"]);
        let mut trace = command(TRACE);
        trace.args(["-o", "d.ccscope"]).arg(program);
        let output = succeed(trace.current_dir(&folder));
        let report = ["report", "d.ccscope", "-o", "page.html"];
        let report = ccscope(folder.path(), &report);
        assert!(report.status.success(), "{}", utf8(&report.stderr));
        let profile = Profile::open(folder.path().join("d.ccscope")).unwrap();
        Traced {
            folder,
            said: utf8(&output.stderr),
            profile,
        }
    })
}

#[test]
fn a_trace_is_written_as_a_profile_of_its_pages() {
    let it = traced();
    let run = &it.profile.run;
    assert!(run.command[0].ends_with("disparity-c"), "{run:?}");
    assert_eq!((run.exit, run.parent), (Exit::Code(0), run.pid));
    assert!(
        it.said.contains("see `ccscope report d.ccscope`"),
        "{}",
        it.said
    );
    // All accesses are of some page.
    let number = |thing: &str| -> u64 {
        let before = it.said.split(thing).next().unwrap().trim_end();
        before.rsplit([' ', ',']).next().unwrap().parse().unwrap()
    };
    let sum = |of: fn(&PageUse) -> u64| -> u64 { it.profile.pages.iter().map(of).sum() };
    let (loads, stores) = (number(" loads"), number(" stores"));
    assert!(loads > 4000 && stores > 1000, "{}", it.said);
    // One over the border of two pages counts for both.
    assert!((loads..=loads + 10).contains(&sum(|it| it.loads)));
    assert!((stores..=stores + 10).contains(&sum(|it| it.stores)));
    assert!(sum(|it| it.blocks) > 0);
    assert!(it.profile.pages.iter().any(|it| it.part == PARTS - 1));
    // The images and what is computed are in the heap.
    let heap = it.mapping("[heap]");
    assert!(
        heap.mapping.is_traced && heap.counts.loads > 4000,
        "{heap:?}"
    );
    assert!(heap.touched < heap.pages(), "{heap:?}");
    let names = |is: fn(&&Mapping) -> bool| -> Vec<&str> {
        let all = it.profile.mappings.iter().filter(is);
        all.map(|it| &*it.name).collect()
    };
    let quiet = names(|it| !it.is_traced);
    for name in ["[stack]", "trace-disparity-c", "libc.so.6"] {
        assert!(quiet.contains(&name), "{name}: {quiet:?}");
    }
    let traced = names(|it| it.is_traced);
    for name in ["[heap]", "trace-disparity-c", "libc.so.6 (bss)"] {
        assert!(traced.contains(&name), "{name}: {traced:?}");
    }
}

#[test]
fn a_trace_is_shown_in_a_screen_and_refused_where_sites_are_needed() {
    let folder = traced().folder.path();
    let run = |words: &[&str]| ccscope(folder, words);
    let output = run(&["show", "d.ccscope"]);
    let shown = utf8(&output.stdout);
    assert!(
        output.status.success() && shown.lines().count() <= 40,
        "{shown}"
    );
    for part in [
        "trace-disparity-c: exit 0 after",
        "\naccesses     ",
        "\npages        ",
        " blocks  mapping\n",
        "  [heap]\n",
        "\nnot traced   ",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let json: Value =
        serde_json::from_slice(&run(&["show", "d.ccscope", "--json"]).stdout).unwrap();
    let mappings = json["mappings"].as_array().unwrap();
    let heap = mappings.iter().find(|it| it["name"] == "[heap]").unwrap();
    assert_eq!(heap["touched"], traced().mapping("[heap]").touched);
    let why = "ccscope: this profile is of a trace: it has pages, not sites: `ccscope report \
               d.ccscope`\n";
    for words in [
        &["show", "d.ccscope", "--sites"][..],
        &["show", "d.ccscope", "--sort=bytes"],
        &["advise", "d.ccscope"],
        &["diff", "d.ccscope", "d.ccscope"],
        &["export", "d.ccscope", "--to=pprof"],
        &["export", "d.ccscope", "--to=collapsed"],
    ] {
        let output = run(words);
        assert_eq!(
            (output.status.code(), utf8(&output.stderr)),
            (Some(1), why.into()),
            "{words:?}"
        );
    }
    fs::write(folder.join("l.txt"), " L 1ff0,8\n").unwrap();
    let mut tool = command(TRACE);
    let tool = tool.args(["--import=l.txt", "-o", "l.ccscope"]);
    let output = tool.current_dir(folder).output().unwrap();
    let why = utf8(&output.stderr);
    assert!(
        output.status.code() == Some(2) && why.contains("of a run"),
        "{why}"
    );
}

/// Numbers of pixels of the picture by colour: those of `style.css` for most accesses in the light
/// page, for what is not traced, and all that are neither white nor grey.
fn painted(browser: &mut Browser) -> (u64, u64, u64) {
    let found = browser.eval(
        "(() => {
            const canvas = document.querySelector('.picture canvas');
            const { width, height } = canvas;
            const copy = new OffscreenCanvas(width, height).getContext('2d');
            copy.drawImage(canvas, 0, 0);
            const { data } = copy.getImageData(0, 0, width, height);
            const is = (i, rgb) => rgb.every((it, n) => Math.abs(it - data[i + n]) < 3);
            let [most, untraced, red] = [0, 0, 0];
            for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] < 255) continue;
                if (is(i, [0x4a, 0x05, 0x08])) most++;
                if (is(i, [0xc3, 0xc8, 0xd1])) untraced++;
                if (data[i] > data[i + 2] + 30) red++;
            }
            return [most, untraced, red];
        })()",
    );
    let number = |at: usize| found[at].as_u64().unwrap();
    (number(0), number(1), number(2))
}

const PRESS: &str = "const press = (key) => document.querySelector('.picture canvas')\
    .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))";

#[test]
fn the_picture_has_a_dot_for_each_page_the_darker_the_more_accesses() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let it = traced();
    browser.open(&it.page(), "");
    assert_eq!(text(&mut browser, "#tabs a[aria-current]"), "Pages");
    assert_eq!(shown(&mut browser, "#tabs a"), 2);
    let labels = text(&mut browser, ".picture .labels");
    let heap = it.mapping("[heap]");
    let place = format!(
        "{:#x} · {} of {} pages",
        heap.mapping.start,
        heap.touched,
        heap.pages()
    );
    for part in [
        "[heap]",
        &place,
        "trace-disparity-c data",
        "text, constants",
    ] {
        assert!(labels.contains(part), "no {part:?} in {labels}");
    }
    // Only the page with the most accesses is the darkest.
    let (most, untraced, red) = painted(&mut browser);
    assert!(
        most > 20 && untraced > 2 * most && red >= most,
        "{most} {untraced} {red}"
    );
    assert!(text(&mut browser, ".scale").contains("not accessed"));
    // The keyboard leads from page to page.
    browser.act(&format!("{PRESS}; press('End'); press('Home')"));
    let first = text(&mut browser, "#memory-page-detail");
    assert!(first.contains(": 0x") && first.contains(" load"), "{first}");
    let touched: u64 = by_mapping(&it.profile).iter().map(|it| it.touched).sum();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..touched + 2 {
        seen.insert(text(&mut browser, "#memory-page-detail"));
        browser.act(&format!("{PRESS}; press('ArrowRight')"));
    }
    assert_eq!(seen.len() as u64, touched);
    assert!(seen.iter().any(|it| it.starts_with("[heap]: ")), "{seen:?}");
    browser.act(&format!(
        "{PRESS}; press('ArrowUp'); press('ArrowDown'); press('Escape')"
    ));
    assert!(text(&mut browser, "#memory-page-detail").starts_with("Point at"));
    // A row of the table for each mapping with accesses.
    let used = by_mapping(&it.profile)
        .iter()
        .filter(|it| it.touched > 0)
        .count();
    assert_eq!(shown(&mut browser, "#view tbody tr"), used as u64);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_picture_is_of_one_kind_and_of_parts_of_the_run() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let it = traced();
    browser.open(&it.page(), "");
    let whole = painted(&mut browser);
    let output = "#view .player output";
    assert!(text(&mut browser, output).starts_with("the whole run, "));
    // Few pages are copied to or filled.
    browser.act("document.querySelector('#view [data-key=blocks]').click()");
    let blocks = painted(&mut browser);
    assert!(0 < blocks.2 && blocks.2 < whole.2, "{blocks:?} {whole:?}");
    assert_eq!(browser.eval("location.hash"), "#count=blocks");
    assert_eq!(text(&mut browser, "#view [aria-pressed=true]"), "blocks");
    browser.open(&it.page(), "count=stores&part=40");
    assert!(text(&mut browser, output).starts_with("part 41 of 64, events "));
    assert_eq!(browser.eval("document.getElementById('part').value"), "40");
    assert_eq!(shown(&mut browser, ".bars i.now"), 1);
    // By the slider, and back to the whole.
    browser.act(
        "const slider = document.getElementById('part'); slider.value = 63; \
         slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change'))",
    );
    assert_eq!(browser.eval("location.hash"), "#count=stores&part=63");
    let last = painted(&mut browser);
    assert!(last.2 < whole.2, "{last:?} {whole:?}");
    browser.act("document.getElementById('whole').click()");
    assert_eq!(browser.eval("location.hash"), "#count=stores");
    // Played to its end, it stays there.
    browser.open(&it.page(), "part=61");
    browser.act("document.getElementById('play').click()");
    assert_eq!(text(&mut browser, "#play"), "Pause");
    let ended = "new Promise((done) => { const look = () => \
        document.getElementById('play').textContent === 'Play' ? done(location.hash) \
        : setTimeout(look, 20); look(); })";
    assert_eq!(browser.eval(ended), "#part=63");
    // Links that make no sense show the whole.
    browser.open(&it.page(), "count=x&part=64&view=sites");
    assert!(text(&mut browser, output).starts_with("the whole run, "));
    // In the dark, and on paper.
    browser.open(&it.page(), "theme=dark");
    assert_eq!(painted(&mut browser).0, 0);
    browser.act("dispatchEvent(new Event('beforeprint'))");
    assert!(painted(&mut browser).0 > 20);
    let width = browser.eval("document.querySelector('.picture canvas').clientWidth");
    assert!(width.as_u64().unwrap() <= 700, "{width}");
    browser.act("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Many pages far from each other, in many mappings with names that are markup.
#[test]
fn a_picture_of_much_memory_stays_small() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let hostile = "<img src=x onerror=alert(1)>";
    let mut profile = Profile::open(traced().folder.path().join("d.ccscope")).unwrap();
    profile.mappings = (0..2000)
        .map(|it| Mapping {
            start: (it << 20) * PAGE,
            end: ((it << 20) + (1 << 19)) * PAGE,
            name: hostile.to_owned(),
            rights: hostile.to_owned(),
            is_traced: true,
        })
        .collect();
    let uses = (0..2000_u64).flat_map(|mapping| {
        (0..100).map(move |it| PageUse {
            page: (mapping << 20) + it * 999,
            part: u8::try_from(it % 64).unwrap(),
            loads: mapping * it + 1,
            stores: 0,
            blocks: 0,
        })
    });
    profile.pages = uses.collect();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("page.html");
    let mut bytes = Vec::new();
    store::write(&profile, &mut bytes).unwrap();
    assert!(
        bytes.len() < 4 * profile.pages.len() + 200_000,
        "{}",
        bytes.len()
    );
    let none = std::iter::empty::<Result<Vec<Chunk>, Infallible>>();
    let html = page::to_html(&profile, None, none, &Options::default()).unwrap();
    assert!(html.len() < 2_000_000, "{}", html.len());
    fs::write(&path, html).unwrap();
    browser.open(&path, "");
    assert!(text(&mut browser, ".picture .labels").contains(hostile));
    assert!(text(&mut browser, "#view .note").contains("A dot stands for "));
    assert!(text(&mut browser, "#view .note").contains("1,880 mappings with the fewest"));
    assert_eq!(shown(&mut browser, "#view img"), 0);
    let height = browser.eval("document.querySelector('.picture canvas').height");
    assert!(height.as_u64().unwrap() < 16_000, "{height}");
    browser.act("document.querySelector('#view [data-key=loads]').click()");
    browser.act(
        "const canvas = document.querySelector('.picture canvas'); \
         const { left, top } = canvas.getBoundingClientRect(); \
         for (let y = 0; document.getElementById('tip').hidden && y < 100; y++) \
             canvas.dispatchEvent(new MouseEvent('mousemove', \
                 { clientX: left + 256, clientY: top + y }))",
    );
    assert!(text(&mut browser, "#tip").contains(hostile));
    assert_eq!(shown(&mut browser, "#tip img"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
