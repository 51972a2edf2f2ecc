//! The picture of a map.
//!
//! ```text
//! title, counts                                   depth: ▇▇▇▇▇▇▇▇ from the root to the deepest
//! page 0 · 31 nodes · 40 edges leave      page 3 · ..                       page 4 · ..
//! ┌──┬──┬──┬──┐ ┌──┬──┬──┬──┐ .. ..       a panel for each page: its blocks from left to right, 1 KiB a row,
//! │▇▇│▇ │  │▇▇│ │  │▇ │▇▇│  │             256 B between the wider gaps;
//! ├──┼──┼──┼──┤ ├──┼──┼──┼──┤             nodes as bars where they lie in their block, coloured by depth;
//! │  │▇▇│▇▇│▇ │ │▇▇│▇▇│▇▇│▇▇│             lines for the edges that leave a block
//! ```
//!
//! Hand-written SVG without style sheets, scripts or fonts of its own. Bars of one colour are one
//! path, lines of one kind are another one: some 20 bytes a node or edge. Lines between pages lie
//! under the bars, so that the colours stay clean.

use super::{Map, MappedNode, palette};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// How a [`Map`] is drawn.
///
/// # Examples
///
/// ```
/// # use ccmorph::{Map, MapStyle};
/// # let map = Map::new(&[u32::MAX, 0, 0], vec![0, 24, 4096], 24).unwrap();
/// let svg = map.to_svg(&MapStyle::new().title("as allocated").path_to(2));
/// assert!(svg.starts_with("<svg "));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a style draws nothing by itself"]
pub struct MapStyle {
    title: String,
    block_bytes: u64,
    pages_max: usize,
    edges_max: usize,
    path_to: Option<u32>,
}

impl Default for MapStyle {
    fn default() -> Self {
        MapStyle::new()
    }
}

impl MapStyle {
    /// Blocks of 64 bytes, up to 36 pages and 4000 edges, no title and no path.
    pub fn new() -> MapStyle {
        MapStyle {
            title: String::new(),
            block_bytes: 64,
            pages_max: 36,
            edges_max: 4000,
            path_to: None,
        }
    }

    /// Sets the first line. Any text.
    pub fn title(mut self, title: impl Into<String>) -> MapStyle {
        self.title = title.into();
        self
    }

    /// Sets the size of a block: a cell of the picture. Rounded down to a power of two; 16 at
    /// least, and 1024 at most.
    pub fn block_bytes(mut self, bytes: u64) -> MapStyle {
        self.block_bytes = 1 << bytes.clamp(16, ROW_BYTES).ilog2();
        self
    }

    /// Limits the number of pages. Of more than this, those are shown that the
    /// [path](MapStyle::path_to) leads through, then those that searches touch most often.
    pub fn pages(mut self, pages_max: usize) -> MapStyle {
        self.pages_max = pages_max;
        self
    }

    /// Limits the number of lines for edges. Of more than this, those of the smallest depth are
    /// drawn.
    pub fn edges(mut self, edges_max: usize) -> MapStyle {
        self.edges_max = edges_max;
        self
    }

    /// Draws the way from the root to this node, the way of one search.
    pub fn path_to(mut self, number: u32) -> MapStyle {
        self.path_to = Some(number);
        self
    }
}

const PAGE_BYTES: u64 = 4096;
/// A panel has rows of 1 KiB,
const ROW_BYTES: u64 = 1024;
/// with wider gaps between what an access to memory brings in.
const GROUP_BYTES: u64 = 256;

const MARGIN: f64 = 16.0;
const COLUMNS: usize = 3;
const GROUP_WIDTH: f64 = 74.0;
const GROUP_GAP: f64 = 4.0;
const CELL_GAP: f64 = 2.0;
const ROW_HEIGHT: f64 = 15.0;
const ROW_GAP: f64 = 3.0;
const LABEL_HEIGHT: f64 = 15.0;
const PANEL_WIDTH: f64 = 4.0 * GROUP_WIDTH + 3.0 * GROUP_GAP;
const PANEL_HEIGHT: f64 = 4.0 * ROW_HEIGHT + 3.0 * ROW_GAP;
const PANEL_GAP: f64 = 16.0;
const HEADER_HEIGHT: f64 = 96.0;
const WIDTH: f64 = 2.0 * MARGIN + COLUMNS as f64 * PANEL_WIDTH + (COLUMNS - 1) as f64 * PANEL_GAP;
/// As many colours are told apart.
const COLOURS_MAX: u32 = 32;

impl Map {
    /// Draws the map: pages as panels, blocks as cells, nodes as bars in them coloured by depth,
    /// and lines for edges that leave a block. A whole SVG document.
    ///
    /// O(n log n); some 20 bytes of text for each node and edge that is shown.
    ///
    /// # Panics
    ///
    /// When the style names a path to a node that does not exist.
    pub fn to_svg(&self, style: &MapStyle) -> String {
        Drawing::new(self, style).draw()
    }
}

struct Drawing<'m> {
    map: &'m Map,
    style: &'m MapStyle,
    path: Vec<MappedNode>,
    /// The numbers of the pages that are shown, with their places.
    panels: BTreeMap<u64, usize>,
    pages: usize,
    levels: u32,
    text: String,
}

impl<'m> Drawing<'m> {
    fn new(map: &'m Map, style: &'m MapStyle) -> Drawing<'m> {
        let path = style
            .path_to
            .map_or_else(Vec::new, |number| map.path_to(number));
        let pages: BTreeSet<u64> = map
            .addresses
            .iter()
            .map(|address| address / PAGE_BYTES)
            .collect();
        // Those of the path by themselves, the others by probability; nodes may reach into pages in
        // which none begins.
        let mut busiest: Vec<(u64, f64)> = match map.is_empty() {
            true => Vec::new(),
            false => map.probabilities(PAGE_BYTES).end_blocks().to_vec(),
        };
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let shown: BTreeSet<u64> = (path.iter().map(|node| node.address / PAGE_BYTES))
            .chain(busiest.into_iter().map(|(page, _)| page))
            .filter(|page| pages.contains(page))
            .scan(BTreeSet::new(), |seen: &mut BTreeSet<u64>, page| {
                seen.insert(page);
                (seen.len() <= style.pages_max).then_some(page)
            })
            .collect();
        Drawing {
            map,
            style,
            path,
            panels: shown.into_iter().zip(0..).collect(),
            pages: pages.len(),
            levels: map.levels(),
            text: String::new(),
        }
    }

    fn draw(mut self) -> String {
        let rows = self.panels.len().div_ceil(COLUMNS);
        let height = HEADER_HEIGHT
            + rows as f64 * (LABEL_HEIGHT + PANEL_HEIGHT + PANEL_GAP)
            + if self.panels.len() < self.pages {
                20.0
            } else {
                0.0
            }
            + MARGIN / 2.0;
        let title = escape(&self.style.title);
        self.text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" fill=\"#222\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        self.header(&title);
        let (in_page, between_pages) = self.edges();
        self.pages();
        self.line(&between_pages, BETWEEN_PAGES);
        self.nodes();
        self.line(&in_page, IN_PAGE);
        self.path();
        self.page_labels();
        if self.panels.len() < self.pages {
            let hidden = self.pages - self.panels.len();
            let note = match hidden {
                1 => "1 more page is not shown: searches touch it less often.".to_owned(),
                _ => format!("{hidden} more pages are not shown: searches touch them less often."),
            };
            self.label(MARGIN, height - MARGIN, 11.0, &note);
        }
        self.text.push_str("</svg>\n");
        self.text
    }

    fn label(&mut self, x: f64, y: f64, size: f64, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{}\" y=\"{}\" font-size=\"{size}\">{text}</text>",
            Short(x),
            Short(y)
        );
    }

    fn header(&mut self, title: &str) {
        let (map, block_bytes) = (self.map, self.style.block_bytes);
        let _ = writeln!(
            self.text,
            "<text x=\"{MARGIN}\" y=\"30\" font-size=\"18\" font-weight=\"bold\">{title}</text>"
        );
        let counts = format!(
            "{} nodes of {} B in {} blocks of {block_bytes} B and {} pages",
            map.len(),
            map.node_bytes,
            map.pieces(block_bytes).count(),
            self.pages
        );
        self.label(MARGIN, 50.0, 12.0, &counts);
        let shares = format!(
            "edges that stay in a block {:.1}%, in {GROUP_BYTES} B {:.1}%, in a page {:.1}%; {} leave their block",
            map.share_within(block_bytes),
            map.share_within(GROUP_BYTES),
            map.share_within(PAGE_BYTES),
            map.edges() - map.edges_within(block_bytes)
        );
        self.label(MARGIN, 67.0, 12.0, &shares);
        let mut searches = format!(
            "the way to a node touches {:.1} blocks in {:.1} pages on average",
            map.touched_by_search(block_bytes),
            map.touched_by_search(PAGE_BYTES)
        );
        if let Some(goal) = self.path.last() {
            let _ = write!(
                searches,
                "; the one drawn: {} in {}, {}",
                counted(self.path.len() as u64, "node"),
                counted(map.touched_on_path(goal.number, block_bytes), "block"),
                counted(map.touched_on_path(goal.number, PAGE_BYTES), "page")
            );
        }
        self.label(MARGIN, 84.0, 12.0, &searches);
        self.legend();
    }

    /// The scale of depths, and what the lines are.
    fn legend(&mut self) {
        const SCALE_WIDTH: f64 = 160.0;
        let left = WIDTH - MARGIN - SCALE_WIDTH;
        let colours = self.colours();
        let step = SCALE_WIDTH / f64::from(colours.max(1));
        for colour in 0..colours {
            let _ = writeln!(
                self.text,
                "<rect x=\"{}\" y=\"16\" width=\"{}\" height=\"10\" fill=\"{}\"/>",
                Short(left + step * f64::from(colour)),
                Short(step + 0.3),
                palette::colour(colour, colours)
            );
        }
        let deepest = self.levels.saturating_sub(1);
        let _ = writeln!(
            self.text,
            "<text x=\"{}\" y=\"25\" font-size=\"11\" text-anchor=\"end\">depth</text>\
             <text x=\"{}\" y=\"38\" font-size=\"11\">0</text>\
             <text x=\"{}\" y=\"38\" font-size=\"11\" text-anchor=\"end\">{deepest}</text>",
            Short(left - 6.0),
            Short(left),
            Short(left + SCALE_WIDTH)
        );
        let mut lines = vec![
            (IN_PAGE, "edge within a page"),
            (BETWEEN_PAGES, "edge between pages"),
        ];
        if !self.path.is_empty() {
            lines.push((ON_PATH, "one way to a node"));
        }
        for (y, (stroke, name)) in [50.0, 64.0, 78.0].into_iter().zip(lines) {
            self.line(
                &format!("M{} {y}h24", Short(left)),
                Stroke {
                    opacity: 1.0,
                    ..stroke
                },
            );
            self.label(left + 30.0, y + 4.0, 11.0, name);
        }
    }

    /// A panel for each page, all cells empty.
    fn pages(&mut self) {
        let mut cells = String::new();
        for block in 0..PAGE_BYTES / self.style.block_bytes {
            let offset = block * self.style.block_bytes;
            rect(
                &mut cells,
                self.in_panel(offset),
                self.in_panel_end(offset, self.style.block_bytes),
            );
        }
        let _ = writeln!(
            self.text,
            "<defs><path id=\"page\" d=\"{cells}\" fill=\"#e8e8e4\"/></defs>"
        );
        for &panel in self.panels.values() {
            let (x, y) = corner(panel);
            let _ = writeln!(
                self.text,
                "<use href=\"#page\" x=\"{}\" y=\"{}\"/>",
                Short(x),
                Short(y)
            );
        }
    }

    /// Above each panel, and above the lines.
    fn page_labels(&mut self) {
        let first_page = self
            .map
            .pieces(PAGE_BYTES)
            .next()
            .map(|page| page.address());
        for piece in self.map.pieces(PAGE_BYTES) {
            let Some(&panel) = self.panels.get(&(piece.address() / PAGE_BYTES)) else {
                continue;
            };
            let (x, y) = corner(panel);
            let label = format!(
                "page {} · {} · {} out",
                (piece.address() - first_page.unwrap_or(0)) / PAGE_BYTES,
                counted(piece.nodes().len() as u64, "node"),
                counted(piece.edges_leaving() as u64, "edge")
            );
            // Letters of this size are about 5.3 wide.
            let width = 5.3 * label.chars().count() as f64 + 4.0;
            let _ = writeln!(
                self.text,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\" fill=\"#fff\" fill-opacity=\"0.8\"/>",
                Short(x - 2.0),
                Short(y - 13.5),
                Short(width)
            );
            self.label(x, y - 4.0, 10.0, &label);
        }
    }

    fn nodes(&mut self) {
        let colours = self.colours();
        let mut bars = vec![String::new(); colours as usize];
        for node in self.map.nodes() {
            let bars = &mut bars[self.colour_of(node.depth) as usize];
            let end = node
                .address
                .saturating_add((self.map.node_bytes as u64).max(1));
            // Of a node that is larger than two pages, no more than these.
            let first_block = node.address / self.style.block_bytes;
            let blocks_max = 2 * PAGE_BYTES / self.style.block_bytes;
            let end_block = end
                .div_ceil(self.style.block_bytes)
                .min(first_block + blocks_max);
            for block in first_block..end_block {
                let begin = block * self.style.block_bytes;
                let first = begin.max(node.address);
                let last = begin.saturating_add(self.style.block_bytes).min(end);
                if let Some(&panel) = self.panels.get(&(first / PAGE_BYTES)) {
                    let (x, y) = corner(panel);
                    let (left, top) = self.in_panel(first % PAGE_BYTES);
                    let (right, bottom) = self.in_panel_end(first % PAGE_BYTES, last - first);
                    // A hair's breadth between nodes that touch.
                    let right = if last == end { right - 0.8 } else { right };
                    rect(
                        bars,
                        (x + left, y + top + 1.0),
                        (x + right, y + bottom - 1.0),
                    );
                }
            }
        }
        for (colour, bars) in (0..).zip(bars).filter(|(_, bars)| !bars.is_empty()) {
            let _ = writeln!(
                self.text,
                "<path fill=\"{}\" d=\"{bars}\"/>",
                palette::colour(colour, colours)
            );
        }
    }

    /// Lines for the edges that leave a block, as far as both ends are shown: those within a page,
    /// and the others.
    fn edges(&self) -> (String, String) {
        let (mut in_page, mut between_pages) = (String::new(), String::new());
        let mut drawn = 0;
        for node in self.map.nodes() {
            let Some(parent) = node.parent.map(|parent| self.map.node(parent)) else {
                continue;
            };
            if self.map.is_with_parent(&node, self.style.block_bytes) {
                continue;
            }
            let (Some(from), Some(to)) = (self.middle(&parent), self.middle(&node)) else {
                continue;
            };
            if drawn == self.style.edges_max {
                break;
            }
            drawn += 1;
            let lines = match self.map.is_with_parent(&node, PAGE_BYTES) {
                true => &mut in_page,
                false => &mut between_pages,
            };
            let _ = write!(
                lines,
                "M{} {}L{} {}",
                Short(from.0),
                Short(from.1),
                Short(to.0),
                Short(to.1)
            );
        }
        (in_page, between_pages)
    }

    fn path(&mut self) {
        let stops: Vec<(f64, f64)> = self
            .path
            .iter()
            .filter_map(|node| self.middle(node))
            .collect();
        if stops.is_empty() {
            return;
        }
        let (mut line, mut dots) = (String::new(), String::new());
        for (letter, (x, y)) in std::iter::once('M')
            .chain(std::iter::repeat('L'))
            .zip(stops)
        {
            let _ = write!(line, "{letter}{} {}", Short(x), Short(y));
            // A line without length, drawn with round ends.
            let _ = write!(dots, "M{} {}h0", Short(x), Short(y));
        }
        // A light border keeps it apart from the other lines.
        self.line(
            &line,
            Stroke {
                colour: "#fff",
                width: 4.5,
                opacity: 0.85,
            },
        );
        self.line(&line, ON_PATH);
        self.line(
            &dots,
            Stroke {
                width: 6.0,
                ..ON_PATH
            },
        );
    }

    fn line(&mut self, path: &str, stroke: Stroke) {
        if path.is_empty() {
            return;
        }
        let Stroke {
            colour,
            width,
            opacity,
        } = stroke;
        let _ = writeln!(
            self.text,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-opacity=\"{opacity}\" \
             stroke-linecap=\"round\" stroke-linejoin=\"round\"/>"
        );
    }

    fn colours(&self) -> u32 {
        self.levels.clamp(1, COLOURS_MAX)
    }

    fn colour_of(&self, depth: u32) -> u32 {
        let colour = u64::from(depth) * u64::from(self.colours()) / u64::from(self.levels.max(1));
        u32::try_from(colour).unwrap_or(0)
    }

    /// The middle of a node, or of its part in the block in which it begins; `None` when that is
    /// not shown.
    fn middle(&self, node: &MappedNode) -> Option<(f64, f64)> {
        let panel = *self.panels.get(&(node.address / PAGE_BYTES))?;
        let (x, y) = corner(panel);
        let offset = node.address % PAGE_BYTES;
        let room = self.style.block_bytes - offset % self.style.block_bytes;
        let (left, top) = self.in_panel(offset);
        let (right, bottom) =
            self.in_panel_end(offset, room.min((self.map.node_bytes as u64).max(1)));
        Some((
            x + f64::midpoint(left, right),
            y + f64::midpoint(top, bottom),
        ))
    }

    /// The upper left corner of what begins at this offset in a page.
    fn in_panel(&self, offset: u64) -> (f64, f64) {
        let (row, column) = (offset / ROW_BYTES, offset % ROW_BYTES);
        let block_width = self.block_width();
        let block = column / self.style.block_bytes;
        let groups = column / GROUP_BYTES.max(self.style.block_bytes);
        let in_block = (column % self.style.block_bytes) as f64 / self.style.block_bytes as f64;
        (
            block as f64 * block_width
                + groups as f64 * GROUP_GAP
                + in_block * (block_width - CELL_GAP),
            row as f64 * (ROW_HEIGHT + ROW_GAP),
        )
    }

    /// The lower right corner of what begins at an offset, and ends in the same block.
    fn in_panel_end(&self, offset: u64, bytes: u64) -> (f64, f64) {
        let (x, y) = self.in_panel(offset);
        let share = bytes as f64 / self.style.block_bytes as f64;
        (x + share * (self.block_width() - CELL_GAP), y + ROW_HEIGHT)
    }

    fn block_width(&self) -> f64 {
        GROUP_WIDTH * self.style.block_bytes as f64 / GROUP_BYTES as f64
    }
}

/// A kind of line.
#[derive(Clone, Copy)]
struct Stroke {
    colour: &'static str,
    width: f64,
    /// Of one line among many.
    opacity: f64,
}

const IN_PAGE: Stroke = Stroke {
    colour: "#333",
    width: 0.7,
    opacity: 0.45,
};
const BETWEEN_PAGES: Stroke = Stroke {
    colour: "#d1495b",
    width: 0.6,
    opacity: 0.4,
};
const ON_PATH: Stroke = Stroke {
    colour: "#000",
    width: 1.8,
    opacity: 1.0,
};

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// The upper left corner of a panel's cells.
fn corner(panel: usize) -> (f64, f64) {
    let (row, column) = (panel / COLUMNS, panel % COLUMNS);
    (
        MARGIN + column as f64 * (PANEL_WIDTH + PANEL_GAP),
        HEADER_HEIGHT + LABEL_HEIGHT + row as f64 * (LABEL_HEIGHT + PANEL_HEIGHT + PANEL_GAP),
    )
}

/// A rectangle as a part of a path.
fn rect(path: &mut String, (left, top): (f64, f64), (right, bottom): (f64, f64)) {
    let width = right - left;
    let _ = write!(
        path,
        "M{} {}h{}v{}h-{}z",
        Short(left),
        Short(top),
        Short(width),
        Short(bottom - top),
        Short(width)
    );
}

/// A length with at most one digit behind the point.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

/// Text for an XML document.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // Not allowed in any form, but for these three.
            letter if letter.is_control() && !"\t\n\r".contains(letter) => escaped.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
