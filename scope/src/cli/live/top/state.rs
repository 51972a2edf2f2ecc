//! What is shown, and what keys change of it.

use std::collections::HashMap;
use std::time::Duration;

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::Profile;
use crate::analyses::findings::seconds_per_event;
use crate::views::stack;

/// Rows that a page key goes over.
const PAGE_ROWS: usize = 10;

/// The capture at one moment.
#[derive(Debug, Default)]
pub(super) struct Picture {
    pub(super) profile: Profile,
    /// By site, its number in the capture.
    pub(super) numbers: Vec<u32>,
    /// When it was taken, after the start of this command.
    pub(super) at: Duration,
    /// For how long it was made.
    pub(super) took: Duration,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// Bytes that are alive
    Live,
    /// Allocations a second
    Allocations,
    /// Allocated bytes a second
    Bytes,
    /// What has been added to the bytes that are alive
    Growth,
    /// Bytes times the time that they were not used
    Drag,
}

/// What has changed between two pictures, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) allocations: f64,
    pub(super) bytes: f64,
}

/// A site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Its index in the picture.
    pub(super) site: usize,
    /// Its number in the capture.
    pub(super) number: u32,
    pub(super) live: u64,
    /// `None` in the first picture.
    pub(super) rate: Option<Rate>,
    /// Bytes since the first picture, or since the user has said.
    pub(super) growth: i64,
    /// Byte-seconds.
    pub(super) drag: f64,
}

impl Row {
    fn key(&self, sort: Sort) -> f64 {
        let rate = self.rate.unwrap_or_default();
        match sort {
            Sort::Live => self.live as f64,
            Sort::Allocations => rate.allocations,
            Sort::Bytes => rate.bytes,
            Sort::Growth => self.growth as f64,
            Sort::Drag => self.drag,
        }
    }
}

/// What a key means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
}

/// Where keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Table,
    /// The text of the filter is typed.
    Filter,
    /// One site, from this line of its text on.
    Site(usize),
}

#[derive(Debug)]
pub(super) struct State {
    /// The newest; empty at first.
    pub(super) picture: Picture,
    /// Those that the filter admits, in order.
    pub(super) rows: Vec<Row>,
    /// Of the process.
    pub(super) rate: Option<Rate>,
    pub(super) growth: i64,
    pub(super) sort: Sort,
    /// Shown are sites with a function or file that contains it.
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) is_paused: bool,
    /// Why there is no newer picture.
    pub(super) problem: Option<String>,
    /// The line from which on the end of a site's text is seen.
    pub(super) last_line: usize,
    /// The number of the site that is selected.
    selected: Option<u32>,
    all: Vec<Row>,
    /// Live bytes by number of the site, from which growth counts; and those of the process.
    base: Option<(HashMap<u32, u64>, u64)>,
}

impl State {
    pub(super) fn new(sort: Sort) -> State {
        State {
            picture: Picture::default(),
            rows: Vec::new(),
            rate: None,
            growth: 0,
            sort,
            filter: String::new(),
            mode: Mode::Table,
            is_paused: false,
            problem: None,
            last_line: 0,
            selected: None,
            all: Vec::new(),
            base: None,
        }
    }

    /// Whether there is a picture.
    pub(super) fn has_picture(&self) -> bool {
        self.base.is_some()
    }

    /// Shows a newer picture.
    pub(super) fn take(&mut self, picture: Picture) {
        let old = std::mem::replace(&mut self.picture, picture);
        let seconds = self.picture.at.saturating_sub(old.at).as_secs_f64();
        let is_first = self.base.is_none();
        let rate = |[allocations, usable]: [u64; 2], [allocations_then, usable_then]: [u64; 2]| {
            let each = |now: u64, then| now.saturating_sub(then) as f64 / seconds.max(1e-3);
            (!is_first).then(|| Rate {
                allocations: each(allocations, allocations_then),
                bytes: each(usable, usable_then),
            })
        };
        let then = old.profile.sites.iter().zip(&old.numbers);
        let then: HashMap<u32, [u64; 2]> = then
            .map(|(site, &number)| (number, [site.allocations, site.usable]))
            .collect();
        let (now, before) = (&self.picture.profile.total, &old.profile.total);
        self.rate = rate(
            [now.allocations, now.usable],
            [before.allocations, before.usable],
        );
        let profile = &self.picture.profile;
        let rows = profile.sites.iter().zip(&self.picture.numbers).enumerate();
        let rows = rows.map(|(index, (site, &number))| Row {
            site: index,
            number,
            live: site.end_usable,
            rate: rate(
                [site.allocations, site.usable],
                then.get(&number).copied().unwrap_or_default(),
            ),
            growth: 0,
            drag: site.drag * seconds_per_event(profile, site),
        });
        self.all = rows.collect();
        self.problem = None;
        if is_first {
            self.grow_from_here();
        }
        self.refresh();
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.mode) {
            (KeyCode::Char('c'), _) if is_control => return Next::Quit,
            (_, _) if is_control => {}
            (code, Mode::Filter) => self.edit_filter(code),
            (KeyCode::Char('q'), Mode::Table) => return Next::Quit,
            (KeyCode::Esc, Mode::Table) if self.filter.is_empty() => return Next::Quit,
            (KeyCode::Esc, Mode::Table) => self.filter.clear(),
            (KeyCode::Char('/'), _) => self.mode = Mode::Filter,
            (KeyCode::Char(' '), _) => self.is_paused = !self.is_paused,
            (KeyCode::Char('r'), _) => self.grow_from_here(),
            (KeyCode::Char(char @ ('l' | 'a' | 'b' | 'g' | 'd')), _) => {
                self.sort = match char {
                    'a' => Sort::Allocations,
                    'b' => Sort::Bytes,
                    'g' => Sort::Growth,
                    'd' => Sort::Drag,
                    _ => Sort::Live,
                };
            }
            (KeyCode::Enter, Mode::Table) if !self.rows.is_empty() => self.mode = Mode::Site(0),
            (KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q'), Mode::Site(_)) => {
                self.mode = Mode::Table;
            }
            (code, Mode::Site(line)) => self.mode = Mode::Site(moved(code, line, self.last_line)),
            (code, Mode::Table) => {
                let most = self.rows.len().saturating_sub(1);
                let index = moved(code, self.selected(), most);
                self.selected = self.rows.get(index).map(|row| row.number);
            }
        }
        self.refresh();
        Next::Stay
    }

    /// The index of the selected row.
    pub(super) fn selected(&self) -> usize {
        let found = { self.rows.iter() }.position(|row| Some(row.number) == self.selected);
        found.unwrap_or(0)
    }

    fn edit_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(char) => self.filter.push(char),
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Table;
            }
            KeyCode::Enter => self.mode = Mode::Table,
            _ => {}
        }
    }

    /// Growth counts from this picture on.
    fn grow_from_here(&mut self) {
        let sites = self.all.iter().map(|row| (row.number, row.live));
        self.base = Some((sites.collect(), self.picture.profile.total.end_usable));
    }

    /// Filters and sorts again. A selected site stays so.
    fn refresh(&mut self) {
        let Some((base, whole)) = &self.base else {
            return;
        };
        let profile = &self.picture.profile;
        let grown = |now: u64, then: u64| now.cast_signed().wrapping_sub(then.cast_signed());
        self.growth = grown(profile.total.end_usable, *whole);
        let admits = |row: &&Row| {
            let mut frames = stack(profile, &profile.sites[row.site]);
            let filter = self.filter.as_str();
            filter.is_empty()
                || frames.any(|it| it.function.contains(filter) || it.file.contains(filter))
        };
        let admitted = self.all.iter().filter(admits);
        self.rows = admitted
            .map(|row| Row {
                growth: grown(row.live, base.get(&row.number).copied().unwrap_or(0)),
                ..*row
            })
            .collect();
        let sort = self.sort;
        self.rows.sort_by(|a, b| {
            let by_key = b.key(sort).total_cmp(&a.key(sort));
            by_key
                .then(b.live.cmp(&a.live))
                .then(a.number.cmp(&b.number))
        });
        if self.rows.is_empty() && self.mode != Mode::Filter {
            self.mode = Mode::Table;
        }
        if matches!(self.mode, Mode::Site(_)) && self.selected.is_none() {
            self.selected = self.rows.first().map(|row| row.number);
        }
    }
}

/// Where a key leads from a line.
fn moved(code: KeyCode, from: usize, most: usize) -> usize {
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => from.saturating_add(1),
        KeyCode::PageUp => from.saturating_sub(PAGE_ROWS),
        KeyCode::PageDown => from.saturating_add(PAGE_ROWS),
        KeyCode::Home => 0,
        KeyCode::End => most,
        _ => from,
    };
    to.min(most)
}
