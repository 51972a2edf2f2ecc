use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::{Look, draw};
use super::state::{Mode, Next, Picture, Rate, Sort, State};
use crate::Profile;
use crate::profile::{Frame, Point, Run, Site, Totals};
use crate::views::Options;

/// A site with its number in the capture, its allocations, and the bytes that are alive.
type Given = (u32, u64, u64);

/// After so many seconds; each allocation is of 10 bytes. The function of site `n` is `make_n`.
fn picture(seconds: u64, sites: &[Given]) -> Picture {
    let frames = sites.iter().map(|(number, ..)| Frame {
        function: format!("make_{number}"),
        file: "no/such.rs".to_owned(),
        line: *number,
        ..Frame::default()
    });
    let made = (0..)
        .zip(sites)
        .map(|(frame, &(_, allocations, live))| Site {
            stack: vec![frame],
            place: Some(frame),
            allocations,
            usable: allocations * 10,
            end_usable: live,
            ..Site::default()
        });
    let made: Vec<Site> = made.collect();
    let total = |of: fn(&Site) -> u64| made.iter().map(of).sum();
    Picture {
        at: Duration::from_secs(seconds),
        numbers: sites.iter().map(|site| site.0).collect(),
        profile: Profile {
            run: Run {
                seconds: seconds as f64,
                ..Run::default()
            },
            total: Totals {
                allocations: total(|site| site.allocations),
                usable: total(|site| site.usable),
                end_usable: total(|site| site.end_usable),
                end_chunks: 7,
                peak_usable: 9_000_000,
                ..Totals::default()
            },
            curve: vec![Point {
                time: 1,
                ns: 0,
                usable: 1000,
                peak: 1000,
                requested: 0,
                touched: 0,
                allocations: 1,
            }],
            frames: frames.collect(),
            sites: made,
            ..Profile::default()
        },
        ..Picture::default()
    }
}

/// Site 9 comes between the pictures, before the others.
fn state() -> State {
    let mut state = State::new(Sort::Live);
    state.take(picture(1, &[(3, 10, 200), (5, 1000, 40)]));
    state.take(picture(3, &[(9, 4, 7_000), (3, 10, 60), (5, 5000, 50)]));
    state
}

fn press(state: &mut State, keys: &[KeyCode]) -> Next {
    let mut next = Next::Stay;
    for &code in keys {
        next = state.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    next
}

fn typed(state: &mut State, text: &str) {
    let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
    press(state, &keys);
}

fn numbers(state: &State) -> Vec<u32> {
    state.rows.iter().map(|row| row.number).collect()
}

fn screen(state: &mut State, width: u16, seconds: u64) -> Vec<String> {
    let look = Look {
        title: "server\u{1b} (12)".to_owned(),
        now: Duration::from_secs(seconds),
        options: Options::default(),
    };
    let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
    let mut last_line = 0;
    terminal
        .draw(|frame| last_line = draw(frame, state, &look))
        .unwrap();
    state.last_line = last_line;
    let cells = terminal.backend().buffer().content();
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|it| it.symbol()).collect();
    let lines = cells.chunks(width.into()).map(line);
    lines
        .map(|line: String| line.trim_end().to_owned())
        .collect()
}

#[test]
fn rows_are_what_has_changed_between_two_pictures() {
    let mut state = State::new(Sort::Live);
    state.take(picture(1, &[(3, 10, 200), (5, 1000, 40)]));
    assert_eq!((state.rows[0].rate, state.rate), (None, None));
    let state = self::state();
    assert_eq!(numbers(&state), [9, 3, 5]);
    let rate = |allocations: f64| {
        let bytes = allocations * 10.0;
        Some(Rate { allocations, bytes })
    };
    let rates: Vec<Option<Rate>> = state.rows.iter().map(|row| row.rate).collect();
    assert_eq!(rates, [rate(2.0), rate(0.0), rate(2000.0)]);
    let growth: Vec<i64> = state.rows.iter().map(|row| row.growth).collect();
    assert_eq!(growth, [7_000, -140, 10]);
    assert_eq!((state.rate, state.growth), (rate(2002.0), 6_870));
}

#[test]
fn keys_sort_and_filter() {
    let mut state = state();
    for (key, order) in [('a', [5, 9, 3]), ('g', [9, 5, 3]), ('l', [9, 3, 5])] {
        assert_eq!(press(&mut state, &[KeyCode::Char(key)]), Next::Stay);
        assert_eq!(numbers(&state), order, "{key}");
    }
    // What is typed is no command.
    typed(&mut state, "/make_5q");
    assert_eq!((state.mode, numbers(&state)), (Mode::Filter, vec![]));
    press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_eq!((state.mode, numbers(&state)), (Mode::Table, vec![5]));
    assert_eq!(press(&mut state, &[KeyCode::Esc]), Next::Stay);
    assert_eq!(numbers(&state), [9, 3, 5]);
    assert_eq!(press(&mut state, &[KeyCode::Esc]), Next::Quit);
    assert_eq!(press(&mut state, &[KeyCode::Char('q')]), Next::Quit);
    typed(&mut state, "/");
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.key(interrupt), Next::Quit);
}

#[test]
fn the_selected_site_stays_so() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down, KeyCode::Down, KeyCode::Down]);
    assert_eq!(state.selected(), 2);
    press(&mut state, &[KeyCode::Char('a')]);
    assert_eq!(state.selected(), 0);
    state.take(picture(4, &[(2, 1, 1), (5, 5000, 45), (9, 900_000, 0)]));
    assert_eq!((numbers(&state), state.selected()), (vec![9, 2, 5], 2));
    state.last_line = 5;
    press(&mut state, &[KeyCode::Home, KeyCode::Enter, KeyCode::Down]);
    assert_eq!((state.mode, state.selected()), (Mode::Site(1), 0));
    press(&mut state, &[KeyCode::Esc, KeyCode::Char('r')]);
    assert_eq!((state.mode, state.growth), (Mode::Table, 0));
    assert!(state.rows.iter().all(|row| row.growth == 0));
}

#[test]
fn a_screen_has_numbers_places_and_the_age_of_the_picture() {
    let empty = screen(&mut State::new(Sort::Live), 80, 0);
    assert_eq!(
        empty[..2],
        ["server\\u{1b} (12)", "reading the capture and symbols…"]
    );
    let mut state = state();
    let lines = screen(&mut state, 100, 3);
    assert_eq!(
        lines[0],
        "server\\u{1b} (12): 7.11 kB live in 7 chunks, peak 9.00 MB"
    );
    let second = "2.00 k allocations/s, 20.0 kB/s, +6.87 kB since the start, 3 sites";
    assert_eq!(lines[1], second);
    assert!(lines[4].ends_with('█'), "{}", lines[4]);
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let heads = ["live▼", "allocs/s", "bytes/s", "growth", "drag", "where"];
    assert_eq!(words(&lines[5]), heads);
    let first = "7.00 kB 2 20 B +7.00 kB 0 no/such.rs:9 make_9";
    assert_eq!(words(&lines[6]).join(" "), first);
    assert!(lines[11].starts_with("q quit"), "{}", lines[11]);
    press(&mut state, &[KeyCode::Char(' ')]);
    let old = &screen(&mut state, 100, 30)[11];
    assert!(
        old.starts_with("paused | 27 s old, made in 0 s | q quit"),
        "{old}"
    );
}

#[test]
fn small_screens_are_drawn() {
    let mut state = state();
    for key in [KeyCode::End, KeyCode::Enter] {
        press(&mut state, &[key]);
        for width in [1, 20, 60] {
            assert_eq!(screen(&mut state, width, 3).len(), 12);
        }
    }
}

#[test]
fn a_site_has_its_stack() {
    let mut state = state();
    press(&mut state, &[KeyCode::Enter]);
    let lines = screen(&mut state, 80, 3);
    assert!(lines[5].contains("no/such.rs:9 make_9"), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("esc back"), "{lines:?}");
    press(&mut state, &[KeyCode::End]);
    assert!(
        screen(&mut state, 80, 3)[10].contains("make_9"),
        "{lines:?}"
    );
}
