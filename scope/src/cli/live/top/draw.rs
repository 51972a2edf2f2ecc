//! Draws a state.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Sparkline, Table, TableState};

use super::state::{Mode, Row, Sort, State};
use crate::analyses::curves::{StepFunction, end_ns};
use crate::analyses::units::{byte_seconds, bytes, plural, prefixed, seconds};
use crate::profile::Point;
use crate::views::text::{escape, fit};
use crate::views::{Options, site_place, terminal};

/// Columns of the numbers in the table.
const NUMBERS: [u16; 5] = [9, 11, 11, 10, 11];
/// Pictures that are older are told to be.
const OLD: Duration = Duration::from_secs(2);

/// Of what, and when.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The program's name and process.
    pub(super) title: String,
    /// Since the start of this command.
    pub(super) now: Duration,
    pub(super) options: Options,
}

/// Returns what [`State::last_line`] is then.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, look: &Look) -> usize {
    let rows = [
        Constraint::Length(2),
        Constraint::Length(3),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [head, curve, body, status] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(head_text(state, look), head);
    let profile = &state.picture.profile;
    let site = matches!(state.mode, Mode::Site(_))
        .then(|| state.rows.get(state.selected()))
        .flatten();
    let (points, now) = match site {
        Some(row) => (&profile.sites[row.site].curve, row.live),
        None => (&profile.curve, profile.total.end_usable),
    };
    let values = heights(points, now, end_ns(profile), curve.width);
    frame.render_widget(Sparkline::default().data(values), curve);
    let mut last_line = 0;
    match (site, state.mode) {
        (Some(row), Mode::Site(line)) => {
            let options = Options {
                width: body.width.into(),
                ..look.options.clone()
            };
            let text = terminal::source(profile, &options, row.site);
            last_line = text.lines().count().saturating_sub(body.height.into());
            let lines = text.lines().skip(line.min(last_line));
            frame.render_widget(Paragraph::new(Text::from_iter(lines)), body);
        }
        _ => table(frame, state, look, body),
    }
    let status_style = Style::new().add_modifier(Modifier::DIM);
    let text = fit(&status_text(state, look), status.width.into());
    frame.render_widget(Line::styled(text, status_style), status);
    last_line
}

fn head_text(state: &State, look: &Look) -> Text<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = escape(&look.title);
    if !state.has_picture() {
        let lines = [
            Line::styled(title, bold),
            Line::raw("reading the capture and symbols…"),
        ];
        return Text::from_iter(lines);
    }
    let total = &state.picture.profile.total;
    let first = format!(
        "{title}: {} live in {}, peak {}",
        bytes(total.end_usable),
        plural(total.end_chunks, "chunk"),
        bytes(total.peak_usable)
    );
    let rate = state.rate.map_or_else(String::new, |rate| {
        let allocations = prefixed(rate.allocations, "");
        let sizes = prefixed(rate.bytes, "B");
        format!("{} allocations/s, {sizes}/s, ", allocations.trim_end())
    });
    let sites = plural(state.picture.profile.sites.len() as u64, "site");
    let second = format!("{rate}{} since the start, {sites}", signed(state.growth));
    Text::from_iter([Line::styled(first, bold), Line::raw(second)])
}

/// The largest value in each column.
fn heights(points: &[Point], now: u64, end: u64, columns: u16) -> Vec<u64> {
    let curve = StepFunction::allocated(points);
    let edge = |column: u16| {
        let at = u128::from(end) * u128::from(column) / u128::from(columns.max(1));
        u64::try_from(at).unwrap_or(u64::MAX)
    };
    let value = |column: u16| match column + 1 < columns {
        true => curve.max(edge(column), edge(column + 1).saturating_sub(1)),
        // A point is not written with each change.
        false => now,
    };
    (0..columns).map(value).collect()
}

fn table(frame: &mut Frame<'_>, state: &State, look: &Look, area: Rect) {
    let heads = [
        ("live", Sort::Live),
        ("allocs/s", Sort::Allocations),
        ("bytes/s", Sort::Bytes),
        ("growth", Sort::Growth),
        ("drag", Sort::Drag),
    ];
    let heads = heads.map(|(head, sort)| match sort == state.sort {
        true => number(format!("{head}▼")),
        false => number(head.to_owned()),
    });
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let heads = heads.into_iter().chain([Cell::from("where")]);
    let taken: u16 = NUMBERS.iter().map(|width| width + 1).sum();
    let columns = usize::from(area.width.saturating_sub(taken));
    // Only rows that are seen get their text.
    let seen = usize::from(area.height.saturating_sub(1));
    let selected = state.selected();
    let first = (selected + 1).saturating_sub(seen);
    let rows = state.rows.iter().skip(first).take(seen);
    let rows = rows.map(|row| table_row(state, look, row, columns));
    let widths = NUMBERS.map(Constraint::Length).into_iter();
    let table = Table::new(rows, widths.chain([Constraint::Min(1)]))
        .header(TableRow::new(heads).style(bold))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut shown = TableState::new().with_selected(Some(selected.saturating_sub(first)));
    frame.render_stateful_widget(table, area, &mut shown);
}

fn table_row(state: &State, look: &Look, row: &Row, columns: usize) -> TableRow<'static> {
    let place = site_place(&state.picture.profile, row.site, &look.options, columns);
    let rate = |of: Option<f64>, unit| match of {
        Some(rate) if rate > 0.0 => prefixed(rate, unit).trim_end().to_owned(),
        Some(_) => "0".to_owned(),
        None => "-".to_owned(),
    };
    let drag = match row.drag {
        drag if drag > 0.0 => byte_seconds(drag),
        _ => "0".to_owned(),
    };
    TableRow::new([
        number(bytes(row.live)),
        number(rate(row.rate.map(|rate| rate.allocations), "")),
        number(rate(row.rate.map(|rate| rate.bytes), "B")),
        number(signed(row.growth)),
        number(drag),
        Cell::from(fit(&place, columns)),
    ])
}

fn number(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

fn signed(number: i64) -> String {
    let sign = match number {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", bytes(number.unsigned_abs()))
}

fn status_text(state: &State, look: &Look) -> String {
    let keys = match state.mode {
        Mode::Filter => return format!("filter: {}▏ enter keeps it, esc ends it", state.filter),
        Mode::Site(_) => "esc back, up and down scroll, q back",
        Mode::Table => {
            "q quit, enter site, / filter, l a b g d sort, r growth from here, space pause"
        }
    };
    let mut parts = Vec::new();
    parts.extend(state.problem.clone());
    if state.is_paused {
        parts.push("paused".to_owned());
    }
    let age = look.now.saturating_sub(state.picture.at);
    if state.has_picture() && (age > OLD + state.picture.took || state.picture.took > OLD / 4) {
        let took = seconds(state.picture.took.as_secs_f64());
        parts.push(format!("{} s old, made in {took}", age.as_secs()));
    }
    if !state.filter.is_empty() {
        parts.push(format!("filter {}", escape(&state.filter)));
    }
    parts.push(keys.to_owned());
    parts.join(" | ")
}
