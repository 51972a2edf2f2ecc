//! Forests from text: who is whose child, one pair a line.
//!
//! ```text
//! parent,child[,address[,bytes]]      this header may be left out
//! a,b
//! a,c
//! ,a                                  a root; only needed to give it an address
//! ```
//!
//! Names are any text without commas; spaces around them do not count. Address and size are those
//! of the child, decimal or `0x` hexadecimal; either all lines have them or none. Empty lines and
//! those that begin with `#` are skipped. The children of a node are in the order of their lines.

use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

use crate::lines::{self, LineError};
use crate::{Lengths, NO_NODE, Placement, Shape};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// A forest that was read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    shape: Shape,
    names: Vec<String>,
    placement: Option<Placement>,
    lengths: Option<Lengths>,
}

impl EdgeList {
    /// The forest, level by level.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What each node is called in the text.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where nodes lie, if the text says so.
    pub fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    /// How many bytes of each node are read, if the text says so.
    pub fn lengths(&self) -> Option<&Lengths> {
        self.lengths.as_ref()
    }
}

/// Reads a forest of at most `nodes_max` nodes, line by line. O(text).
///
/// # Errors
/// [`EdgesError`] with the number of the line: that is no pair, that has other columns than those
/// before, that gives a node a second parent, an edge of a cycle, the node that is one too many, a
/// node without address where others have one.
///
/// # Examples
/// ```
/// let edges = ccmodel::structure::read_edges("parent,child\nroot,left\nroot,right\n".as_bytes(), 1000)?;
/// assert_eq!(edges.names(), ["root", "left", "right"]);
/// assert_eq!(edges.shape().children(0), [1, 2]);
/// # Ok::<(), ccmodel::structure::EdgesError>(())
/// ```
pub fn read_edges(mut reader: impl BufRead, nodes_max: u32) -> Result<EdgeList, EdgesError> {
    let mut rows = Rows::new(nodes_max);
    let mut line = Vec::new();
    let mut number = 0;
    let mut is_first = true;
    while lines::read(&mut reader, &mut line, LINE_BYTES_MAX, &mut number)? {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let text = std::str::from_utf8(text)
            .map_err(|_| EdgesError::at(number, "it is not UTF-8 text"))?;
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        if !(2..=4).contains(&fields.len()) {
            let what = "a line has 2 to 4 columns: parent,child[,address[,bytes]]";
            return Err(EdgesError::at(number, what));
        }
        let is_header = std::mem::take(&mut is_first)
            && fields[0].eq_ignore_ascii_case("parent")
            && fields[1].eq_ignore_ascii_case("child");
        if !is_header {
            rows.add(number, &fields)?;
        }
    }
    rows.finish()
}

/// A node while lines are read.
struct Node {
    parent: u32,
    /// The line that says what it hangs at; 0 for none so far.
    line: u64,
    address: Option<u64>,
    bytes: Option<u32>,
}

/// What was read so far.
struct Rows {
    nodes_max: u32,
    /// Of the first line with data.
    columns: Option<usize>,
    numbers: HashMap<String, u32>,
    nodes: Vec<Node>,
    /// Nodes with a parent, in the order of their lines.
    children: Vec<u32>,
}

impl Rows {
    fn new(nodes_max: u32) -> Rows {
        Rows {
            nodes_max: nodes_max.min(NO_NODE - 1),
            columns: None,
            numbers: HashMap::new(),
            nodes: Vec::new(),
            children: Vec::new(),
        }
    }

    fn add(&mut self, line: u64, fields: &[&str]) -> Result<(), EdgesError> {
        let columns = *self.columns.get_or_insert(fields.len());
        if columns != fields.len() {
            let what = format!(
                "it has {} columns, those before have {columns}",
                fields.len()
            );
            return Err(EdgesError::at(line, what));
        }
        let (parent, child) = (fields[0], fields[1]);
        if child.is_empty() {
            return Err(EdgesError::at(line, "the child has no name"));
        }
        let address = match fields.get(2) {
            Some(text) => Some(number(text).ok_or_else(|| {
                EdgesError::at(
                    line,
                    "an address is a number below 2^64, decimal or 0x hexadecimal",
                )
            })?),
            None => None,
        };
        let bytes = match fields.get(3) {
            Some(text) => {
                let bytes = number(text).and_then(|bytes| u32::try_from(bytes).ok());
                Some(bytes.filter(|&bytes| bytes > 0).ok_or_else(|| {
                    EdgesError::at(line, "a size is a number of bytes from 1 to 2^32 - 1")
                })?)
            }
            None => None,
        };
        let above = if parent.is_empty() {
            NO_NODE
        } else {
            self.number_of(parent, line)?
        };
        let child_number = self.number_of(child, line)?;
        if above == child_number {
            let what = format!("{child:?} is its own parent");
            return Err(EdgesError::at(line, what));
        }
        let node = &mut self.nodes[child_number as usize];
        if node.line != 0 {
            let before = node.line;
            let what = format!("{child:?} was a child or root before, in line {before}");
            return Err(EdgesError::at(line, what));
        }
        *node = Node {
            parent: above,
            line,
            address,
            bytes,
        };
        if above != NO_NODE {
            self.children.push(child_number);
        }
        Ok(())
    }

    fn number_of(&mut self, name: &str, line: u64) -> Result<u32, EdgesError> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        match u32::try_from(self.nodes.len()) {
            Ok(number) if number < self.nodes_max => {
                self.numbers.insert(name.to_owned(), number);
                self.nodes.push(Node {
                    parent: NO_NODE,
                    line: 0,
                    address: None,
                    bytes: None,
                });
                Ok(number)
            }
            _ => {
                let what = format!("{name:?} is one node more than {}", self.nodes_max);
                Err(EdgesError::at(line, what))
            }
        }
    }

    fn finish(self) -> Result<EdgeList, EdgesError> {
        let order = self.level_by_level()?;
        let mut place = vec![NO_NODE; self.nodes.len()];
        for (new, &old) in (0..).zip(&order) {
            place[old as usize] = new;
        }
        let mut names = vec![String::new(); order.len()];
        for (name, old) in self.numbers {
            names[place[old as usize] as usize] = name;
        }
        let nodes = &self.nodes;
        let parents = order.iter().map(|&old| {
            let parent = nodes[old as usize].parent;
            place.get(parent as usize).copied().unwrap_or(NO_NODE)
        });
        let shape = Shape::from_generated(parents.collect());
        let columns = self.columns.unwrap_or(0);
        let (mut addresses, mut lengths) = (Vec::new(), Vec::new());
        for (&old, name) in order.iter().zip(&names) {
            let node = &nodes[old as usize];
            addresses.extend(node.address);
            lengths.extend(node.bytes);
            if columns > 2 && node.address.is_none() {
                return Err(EdgesError::Forest {
                    what: format!(
                        "{name:?} has no address: roots need a line with an empty parent"
                    ),
                });
            }
        }
        Ok(EdgeList {
            shape,
            names,
            placement: (columns > 2).then(|| Placement::from_offsets(addresses)),
            lengths: (columns > 3).then_some(Lengths::Each(lengths)),
        })
    }

    /// The nodes' first numbers in breadth-first order.
    fn level_by_level(&self) -> Result<Vec<u32>, EdgesError> {
        // Children by parent, in the order of their lines.
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for &child in &self.children {
            starts[self.nodes[child as usize].parent as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut children = vec![0u32; self.children.len()];
        for &child in &self.children {
            let place = &mut next[self.nodes[child as usize].parent as usize];
            children[*place as usize] = child;
            *place += 1;
        }
        let roots = (0..)
            .zip(&self.nodes)
            .filter(|(_, node)| node.parent == NO_NODE);
        let mut order: Vec<u32> = roots.map(|(number, _)| number).collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            let (from, to) = (starts[node as usize], starts[node as usize + 1]);
            order.extend(&children[from as usize..to as usize]);
            done += 1;
        }
        if order.len() < self.nodes.len() {
            return Err(self.cycle(&order));
        }
        Ok(order)
    }

    /// The edge of a cycle that comes last in the text; `reached` are the nodes that hang at roots.
    fn cycle(&self, reached: &[u32]) -> EdgesError {
        let mut is_reached = vec![false; self.nodes.len()];
        for &node in reached {
            is_reached[node as usize] = true;
        }
        let start = (0..).zip(&is_reached).find(|&(_, &reached)| !reached);
        let mut node: u32 = start.map_or(0, |(node, _)| node);
        // Upwards from a node that hangs at no root, the way ends in a cycle.
        for _ in 0..self.nodes.len() {
            node = self.nodes[node as usize].parent;
        }
        let first = node;
        let mut last_line = 0;
        loop {
            last_line = last_line.max(self.nodes[node as usize].line);
            node = self.nodes[node as usize].parent;
            if node == first {
                break;
            }
        }
        EdgesError::at(last_line, "this edge closes a cycle")
    }
}

/// A decimal or `0x` hexadecimal number.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// Why a text is no forest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EdgesError {
    /// What is wrong with a line.
    Line {
        /// Its number, from 1 on.
        number: u64,
        /// What is wrong.
        what: String,
    },
    /// What is wrong with the whole.
    Forest {
        /// What is wrong.
        what: String,
    },
}

impl EdgesError {
    fn at(number: u64, what: impl Into<String>) -> EdgesError {
        EdgesError::Line {
            number,
            what: what.into(),
        }
    }
}

impl From<LineError> for EdgesError {
    fn from(error: LineError) -> EdgesError {
        EdgesError::at(error.number, error.what)
    }
}

impl fmt::Display for EdgesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EdgesError::Line { number, what } => write!(f, "line {number}: {what}"),
            EdgesError::Forest { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for EdgesError {}
