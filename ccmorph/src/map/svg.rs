//! The picture of a map.
//!
//! ```text
//! title, counts                                   depth: ▇▇▇▇▇▇▇▇ from the root to the deepest
//! page 0 · 31 nodes · 40 edges leave      page 3 · ..                       page 4 · ..
//! ┌──┬──┬──┬──┐ ┌──┬──┬──┬──┐ .. ..       a panel for each page: its blocks, 1 KiB a row,
//! │▇▇│▇ │  │▇▇│ │  │▇ │▇▇│  │             256 B between the wider gaps;
//! ├──┼──┼──┼──┤ ├──┼──┼──┼──┤             nodes as bars in their block, coloured by depth;
//! │  │▇▇│▇▇│▇ │ │▇▇│▇▇│▇▇│▇▇│             lines for the edges that leave a block
//! ```

use super::{Map, MappedNode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// How a [`Map`] is drawn.
///
/// # Examples
/// ```
/// # use ccmorph::{Map, MapStyle};
/// # let map = Map::new(&[u32::MAX, 0, 0], vec![0, 24, 4096], 24).unwrap();
/// let title = "as allocated".to_owned();
/// let svg = map.to_svg(&MapStyle { title, path_to: Some(2), ..MapStyle::default() });
/// assert!(svg.starts_with("<svg "));
/// ```
#[derive(Clone, Debug)]
pub struct MapStyle {
    /// The first line; empty by default.
    pub title: String,
    /// The size of a block, a cell of the picture: 64 by default. Rounded down to a power of two;
    /// 16 at least, and 1024 at most.
    pub block_bytes: u64,
    /// The number of pages, 36 by default. Those of the [path](MapStyle::path_to) come first, then
    /// those that searches touch most often.
    pub pages_max: usize,
    /// The number of lines for edges, 4000 by default. Those of the smallest depth come first.
    pub edges_max: usize,
    /// The node to which the path from the root is drawn, which a search takes; none by default.
    pub path_to: Option<u32>,
}

impl Default for MapStyle {
    fn default() -> Self {
        MapStyle {
            title: String::new(),
            block_bytes: 64,
            pages_max: 36,
            edges_max: 4000,
            path_to: None,
        }
    }
}

const PAGE_BYTES: u64 = 4096;
/// A row of a panel.
const ROW_BYTES: u64 = 1024;
/// The bytes between two wider gaps: about what an access to memory brings in.
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
const SCALE_WIDTH: f64 = 160.0;
const WIDTH: f64 = 2.0 * MARGIN + COLUMNS as f64 * PANEL_WIDTH + (COLUMNS - 1) as f64 * PANEL_GAP;
/// The colours of depths, from the root to the deepest: the scale `viridis` (S. van der Walt and
/// N. Smith, 2015, in the public domain), which is also clear in print and to colour-blind readers.
const COLOURS: [&str; 9] = [
    "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30",
    "#fde725",
];

/// Stroke attributes of a kind of line.
const IN_PAGE: &str = r##"stroke="#333" stroke-width="0.7""##;
const BETWEEN_PAGES: &str = r##"stroke="#d1495b" stroke-width="0.6""##;
const ON_PATH: &str = r##"stroke="#000" stroke-width="1.8""##;
/// The opacity of one line among many.
const OF_MANY: f64 = 0.4;

impl Map {
    /// Draws the map as an SVG document: pages as panels, blocks as cells, nodes as bars coloured
    /// by depth, and lines for edges that leave a block.
    ///
    /// O(n log n); some 20 bytes of text for each node and edge that is shown.
    ///
    /// # Panics
    /// When the style names a path to a node that does not exist.
    pub fn to_svg(&self, style: &MapStyle) -> String {
        Drawing::new(self, style).draw()
    }
}

struct Drawing<'m> {
    map: &'m Map,
    style: &'m MapStyle,
    block_bytes: u64,
    path: Vec<MappedNode>,
    /// The position of each page that is shown.
    panels: BTreeMap<u64, usize>,
    pages: usize,
    /// How many depths there are, and how many colours they get.
    levels: usize,
    colours: usize,
    text: String,
}

/// The left, top, right and bottom of a rectangle.
type Corners = [f64; 4];

macro_rules! put {
    ($self:ident, $($format:tt)*) => {{
        let _ = writeln!($self.text, $($format)*);
    }};
}

impl<'m> Drawing<'m> {
    fn new(map: &'m Map, style: &'m MapStyle) -> Drawing<'m> {
        let path = style
            .path_to
            .map_or_else(Vec::new, |number| map.path_to(number));
        let page_of = |address: u64| address / PAGE_BYTES;
        let pages: BTreeSet<u64> = map.addresses.iter().copied().map(page_of).collect();
        let mut busiest: Vec<(u64, f64)> = Vec::new();
        if !map.is_empty() {
            busiest.extend(map.probabilities(PAGE_BYTES).end_blocks());
        }
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // Pages of the path come first. Nodes may reach into pages in which none begins.
        let mut shown = BTreeSet::new();
        let on_path = path.iter().map(|node| page_of(node.address));
        for page in on_path.chain(busiest.into_iter().map(|(page, _)| page)) {
            if shown.len() < style.pages_max && pages.contains(&page) {
                shown.insert(page);
            }
        }
        let levels = map.levels() as usize;
        Drawing {
            map,
            style,
            block_bytes: 1 << style.block_bytes.clamp(16, ROW_BYTES).ilog2(),
            path,
            panels: shown.into_iter().zip(0..).collect(),
            pages: pages.len(),
            levels,
            colours: levels.clamp(1, COLOURS.len()),
            text: String::new(),
        }
    }

    fn draw(mut self) -> String {
        let rows = self.panels.len().div_ceil(COLUMNS) as f64;
        let hidden = self.pages - self.panels.len();
        let note_height = if hidden > 0 { 20.0 } else { 0.0 };
        let row_height = LABEL_HEIGHT + PANEL_HEIGHT + PANEL_GAP;
        let height = HEADER_HEIGHT + rows * row_height + note_height + MARGIN / 2.0;
        let title = escape(&self.style.title);
        put!(
            self,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
             font-family=\"system-ui, 'DejaVu Sans', sans-serif\" fill=\"#222\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        );
        self.header(&title);
        self.legend();
        let [in_page, between_pages] = self.edges();
        self.pages();
        // Under the bars, so that their colours stay clean.
        self.line(&between_pages, BETWEEN_PAGES, OF_MANY);
        self.nodes();
        self.line(&in_page, IN_PAGE, OF_MANY);
        self.path();
        self.page_labels();
        if hidden > 0 {
            let pages = counted(hidden as u64, "page");
            let note = format!("Not shown: {pages} that searches touch less often.");
            self.label((MARGIN, height - MARGIN), 11, &note);
        }
        self.text.push_str("</svg>\n");
        self.text
    }

    /// A text with a light border, so that it can be read on top of lines.
    fn label(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        put!(
            self,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" stroke=\"#fff\" \
             stroke-width=\"3\" paint-order=\"stroke\">{text}</text>"
        );
    }

    fn header(&mut self, title: &str) {
        let (map, block_bytes) = (self.map, self.block_bytes);
        let counts = format!(
            "{} nodes of {} B in {} blocks of {block_bytes} B and {} pages",
            map.len(),
            map.node_bytes,
            map.pieces(block_bytes).count(),
            self.pages
        );
        let shares = format!(
            "edges that stay in a block {:.1}%, in {GROUP_BYTES} B {:.1}%, in a page {:.1}%; \
             {} leave their block",
            map.share_within(block_bytes),
            map.share_within(GROUP_BYTES),
            map.share_within(PAGE_BYTES),
            map.edges() - map.edges_within(block_bytes)
        );
        let mut searches = format!(
            "the path to a node touches {:.1} blocks in {:.1} pages on average",
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
        self.label((MARGIN, 30.0), 18, title);
        for (y, line) in [(50.0, counts), (67.0, shares), (84.0, searches)] {
            self.label((MARGIN, y), 12, &line);
        }
    }

    /// The scale of depths, and the kinds of lines.
    fn legend(&mut self) {
        let left = WIDTH - MARGIN - SCALE_WIDTH;
        let step = SCALE_WIDTH / self.colours as f64;
        let mut scale = vec![String::new(); self.colours];
        for (colour, part) in scale.iter_mut().enumerate() {
            let x = left + step * colour as f64;
            rect(part, [x, 16.0, x + step + 0.3, 26.0]);
        }
        self.bars(scale);
        let deepest = self.levels.saturating_sub(1);
        self.label((left, 38.0), 11, &format!("depth 0 to {deepest}"));
        let lines = [
            (50.0, IN_PAGE, "edge within a page"),
            (64.0, BETWEEN_PAGES, "edge between pages"),
            (78.0, ON_PATH, "one path to a node"),
        ];
        let kinds = if self.path.is_empty() { 2 } else { 3 };
        for (y, stroke, name) in lines.into_iter().take(kinds) {
            self.line(&format!("M{left:.1} {y}h24"), stroke, 1.0);
            self.label((left + 30.0, y + 4.0), 11, name);
        }
    }

    /// A panel for each page, all cells empty.
    fn pages(&mut self) {
        let mut cells = String::new();
        for block in 0..PAGE_BYTES / self.block_bytes {
            let cell = self.cell(block * self.block_bytes, self.block_bytes);
            rect(&mut cells, cell);
        }
        put!(
            self,
            "<defs><path id=\"page\" d=\"{cells}\" fill=\"#e8e8e4\"/></defs>"
        );
        for (x, y) in self.panels.values().copied().map(corner) {
            put!(self, "<use href=\"#page\" x=\"{x:.1}\" y=\"{y:.1}\"/>");
        }
    }

    /// Labels above each panel, drawn over the lines.
    fn page_labels(&mut self) {
        let map = self.map;
        let first_page = (map.pieces(PAGE_BYTES).next()).map_or(0, |page| page.address());
        for piece in map.pieces(PAGE_BYTES) {
            if let Some(&panel) = self.panels.get(&(piece.address() / PAGE_BYTES)) {
                let (x, y) = corner(panel);
                let label = format!(
                    "page {} · {} · {} out",
                    (piece.address() - first_page) / PAGE_BYTES,
                    counted(piece.nodes().len() as u64, "node"),
                    counted(piece.edges_leaving() as u64, "edge")
                );
                self.label((x, y - 4.0), 10, &label);
            }
        }
    }

    fn nodes(&mut self) {
        let block_bytes = self.block_bytes;
        let mut bars = vec![String::new(); self.colours];
        for node in self.map.nodes() {
            let bars = &mut bars[node.depth as usize * self.colours / self.levels];
            let end = node.address.saturating_add(self.node_bytes());
            // At most two pages of a larger node.
            let first_block = node.address / block_bytes;
            let end_block = first_block + 2 * PAGE_BYTES / block_bytes;
            for block in first_block..end_block.min(end.div_ceil(block_bytes)) {
                let first = node.address.max(block * block_bytes);
                let last = end.min((block * block_bytes).saturating_add(block_bytes));
                if let Some([left, top, right, bottom]) = self.bar(first, last - first) {
                    // A small gap between nodes that touch.
                    let right = if last == end { right - 0.8 } else { right };
                    rect(bars, [left, top + 1.0, right, bottom - 1.0]);
                }
            }
        }
        self.bars(bars);
    }

    /// Draws paths, each in the colour of its index.
    fn bars(&mut self, bars: Vec<String>) {
        let steps = (self.colours - 1).max(1);
        for (colour, bars) in bars.iter().enumerate().filter(|(_, bars)| !bars.is_empty()) {
            let colour = COLOURS[colour * (COLOURS.len() - 1) / steps];
            put!(self, "<path fill=\"{colour}\" d=\"{bars}\"/>");
        }
    }

    /// Lines for the edges that leave a block if both ends are shown: within a page, and between
    /// pages.
    fn edges(&self) -> [String; 2] {
        let mut lines = [String::new(), String::new()];
        let ends = self.map.nodes().filter_map(|node| {
            let parent = self.map.node(node.parent?);
            let leaves = !self.map.is_with_parent(&node, self.block_bytes);
            leaves.then_some((node, self.middle(&parent)?, self.middle(&node)?))
        });
        for (node, (x, y), (to_x, to_y)) in ends.take(self.style.edges_max) {
            let is_between = !self.map.is_with_parent(&node, PAGE_BYTES);
            let line = &mut lines[usize::from(is_between)];
            let _ = write!(line, "M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}");
        }
        lines
    }

    fn path(&mut self) {
        let (mut line, mut dots) = (String::new(), String::new());
        for (x, y) in self.path.iter().filter_map(|node| self.middle(node)) {
            let letter = if line.is_empty() { 'M' } else { 'L' };
            let _ = write!(line, "{letter}{x:.1} {y:.1}");
            // A line without length, drawn with round ends.
            let _ = write!(dots, "M{x:.1} {y:.1}h0");
        }
        // A light border separates the path from other lines.
        self.line(&line, "stroke=\"#fff\" stroke-width=\"4.5\"", 0.85);
        self.line(&line, ON_PATH, 1.0);
        self.line(&dots, "stroke=\"#000\" stroke-width=\"6\"", 1.0);
    }

    fn line(&mut self, path: &str, stroke: &str, opacity: f64) {
        if !path.is_empty() {
            put!(
                self,
                "<path d=\"{path}\" fill=\"none\" {stroke} stroke-opacity=\"{opacity}\" \
                 stroke-linecap=\"round\" stroke-linejoin=\"round\"/>"
            );
        }
    }

    fn node_bytes(&self) -> u64 {
        (self.map.node_bytes as u64).max(1)
    }

    /// The middle of a node, or of its part in the block in which it begins, if that is shown.
    fn middle(&self, node: &MappedNode) -> Option<(f64, f64)> {
        let in_block = self.block_bytes - node.address % self.block_bytes;
        let [left, top, right, bottom] = self.bar(node.address, self.node_bytes().min(in_block))?;
        Some((f64::midpoint(left, right), f64::midpoint(top, bottom)))
    }

    /// Where `bytes` at an address, which end in the same block, are drawn, if their page is shown.
    fn bar(&self, address: u64, bytes: u64) -> Option<Corners> {
        let (x, y) = corner(*self.panels.get(&(address / PAGE_BYTES))?);
        let [left, top, right, bottom] = self.cell(address % PAGE_BYTES, bytes);
        Some([x + left, y + top, x + right, y + bottom])
    }

    /// The same for an offset in a page, in its panel.
    fn cell(&self, offset: u64, bytes: u64) -> Corners {
        let (row, column) = (offset / ROW_BYTES, offset % ROW_BYTES);
        let block_bytes = self.block_bytes;
        let block_width = GROUP_WIDTH * block_bytes as f64 / GROUP_BYTES as f64;
        let byte_width = (block_width - CELL_GAP) / block_bytes as f64;
        let (block, group) = (column / block_bytes, column / GROUP_BYTES.max(block_bytes));
        let in_block = (column % block_bytes) as f64 * byte_width;
        let x = block as f64 * block_width + group as f64 * GROUP_GAP + in_block;
        let y = row as f64 * (ROW_HEIGHT + ROW_GAP);
        [x, y, x + bytes as f64 * byte_width, y + ROW_HEIGHT]
    }
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// The upper left corner of a panel's cells.
fn corner(panel: usize) -> (f64, f64) {
    let (row, column) = (panel / COLUMNS, panel % COLUMNS);
    let row_height = LABEL_HEIGHT + PANEL_HEIGHT + PANEL_GAP;
    (
        MARGIN + column as f64 * (PANEL_WIDTH + PANEL_GAP),
        HEADER_HEIGHT + LABEL_HEIGHT + row as f64 * row_height,
    )
}

/// Adds a rectangle to a path.
fn rect(path: &mut String, [left, top, right, bottom]: Corners) {
    let (width, height) = (right - left, bottom - top);
    let _ = write!(
        path,
        "M{left:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z"
    );
}

/// Text for an XML document. Control characters and others that XML forbids become U+FFFD.
fn escape(text: &str) -> String {
    let is_forbidden =
        |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    let text = text.replace(is_forbidden, "\u{fffd}");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
