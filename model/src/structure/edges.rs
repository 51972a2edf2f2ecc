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
use std::io::BufRead;

use crate::lines::{self, TextError};
use crate::{Lengths, NO_NODE, Placement, Shape};

/// A forest that was read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgeList {
    /// The forest, level by level.
    pub shape: Shape,
    /// What each node is called in the text.
    pub names: Vec<String>,
    /// Where nodes lie, if the text says so.
    pub placement: Option<Placement>,
    /// How many bytes of each node are read, if the text says so.
    pub lengths: Option<Lengths>,
}

/// Reads a forest of at most `nodes_max` nodes, line by line. O(text).
///
/// # Errors
/// [`TextError`] names the line: that is no pair, that has other columns than those before, that
/// gives a node a second parent, an edge of a cycle, or one node too many; and the node without
/// address where others have one.
///
/// # Examples
/// ```
/// let text = "parent,child\nroot,left\nroot,right\n";
/// let edges = ccmodel::structure::read_edges(text.as_bytes(), 1000)?;
/// assert_eq!(edges.names, ["root", "left", "right"]);
/// assert_eq!(edges.shape.children(0), [1, 2]);
/// # Ok::<(), ccmodel::TextError>(())
/// ```
pub fn read_edges(reader: impl BufRead, nodes_max: u32) -> Result<EdgeList, TextError> {
    let mut rows = Rows {
        nodes_max: nodes_max.min(NO_NODE - 1),
        columns: None,
        numbers: HashMap::new(),
        nodes: Vec::new(),
    };
    let mut is_first = true;
    lines::for_each(reader, &["#"], |line, text| {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_header = std::mem::take(&mut is_first)
            && matches!(fields[..], [a, b, ..] if a.eq_ignore_ascii_case("parent")
                && b.eq_ignore_ascii_case("child"));
        match fields.len() {
            2..=4 if is_header => Ok(()),
            2..=4 => rows.add(line, &fields),
            _ => Err("a line has 2 to 4 columns: parent,child[,address[,bytes]]".to_owned()),
        }
    })?;
    rows.finish()
}

#[derive(Default)]
struct Node {
    parent: Option<u32>,
    /// In the order of their lines.
    children: Vec<u32>,
    /// The line that names its parent; 0 for none so far.
    line: u64,
    address: Option<u64>,
    bytes: u32,
}

struct Rows {
    nodes_max: u32,
    /// Columns of the first line with data.
    columns: Option<usize>,
    numbers: HashMap<String, u32>,
    nodes: Vec<Node>,
}

impl Rows {
    fn add(&mut self, line: u64, fields: &[&str]) -> Result<(), String> {
        let (columns, own) = (*self.columns.get_or_insert(fields.len()), fields.len());
        if columns != own {
            return Err(format!("it has {own} columns, those before have {columns}"));
        }
        let (parent, child) = (fields[0], fields[1]);
        if child.is_empty() {
            return Err("the child has no name".to_owned());
        }
        let address = fields.get(2).map(|text| {
            number(text).ok_or("an address is a number below 2^64, decimal or 0x hexadecimal")
        });
        let bytes = fields.get(3).map_or(Ok(0), |text| {
            let bytes = number(text).and_then(|bytes| u32::try_from(bytes).ok());
            let bytes = bytes.filter(|&bytes| bytes > 0);
            bytes.ok_or("a size is a number of bytes from 1 to 2^32 - 1")
        });
        let above = match parent {
            "" => None,
            _ => Some(self.number_of(parent)?),
        };
        let number = self.number_of(child)?;
        if above == Some(number) {
            return Err(format!("{child:?} is its own parent"));
        }
        let node = &mut self.nodes[number as usize];
        if node.line != 0 {
            let before = node.line;
            return Err(format!(
                "{child:?} was a child or root before, in line {before}"
            ));
        }
        (node.parent, node.line) = (above, line);
        (node.address, node.bytes) = (address.transpose()?, bytes?);
        if let Some(above) = above {
            self.nodes[above as usize].children.push(number);
        }
        Ok(())
    }

    fn number_of(&mut self, name: &str) -> Result<u32, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = u32::try_from(self.nodes.len()).unwrap_or(NO_NODE);
        if number >= self.nodes_max {
            return Err(format!("{name:?} is one node more than {}", self.nodes_max));
        }
        self.numbers.insert(name.to_owned(), number);
        self.nodes.push(Node::default());
        Ok(number)
    }

    fn finish(self) -> Result<EdgeList, TextError> {
        let nodes = &self.nodes;
        // Old numbers level by level, and by old number the new one.
        let roots = (0..).zip(nodes).filter(|(_, node)| node.parent.is_none());
        let mut order: Vec<u32> = roots.map(|(number, _)| number).collect();
        let mut place = vec![NO_NODE; nodes.len()];
        let mut done = 0;
        while let Some(&old) = order.get(done) {
            place[old as usize] = u32::try_from(done).unwrap_or(NO_NODE);
            order.extend(&nodes[old as usize].children);
            done += 1;
        }
        if let Some(mut node) = place.iter().position(|&place| place == NO_NODE) {
            // As many steps up as there are nodes end in the cycle; as many again go round it.
            let above = |node: usize| nodes[node].parent.map_or(node, |above| above as usize);
            (0..nodes.len()).for_each(|_| node = above(node));
            let mut line = 0;
            for _ in 0..nodes.len() {
                node = above(node);
                line = line.max(nodes[node].line);
            }
            return Err(TextError {
                line: Some(line),
                what: "this edge closes a cycle".to_owned(),
            });
        }
        let mut names = vec![String::new(); order.len()];
        for (name, old) in self.numbers {
            names[place[old as usize] as usize] = name;
        }
        let ordered = || order.iter().map(|&old| &nodes[old as usize]);
        let columns = self.columns.unwrap_or(0);
        if let Some(lost) = ordered().position(|node| columns > 2 && node.address.is_none()) {
            let name = &names[lost];
            let what = format!("{name:?} has no address: roots need a line with an empty parent");
            return Err(TextError { line: None, what });
        }
        let parents = ordered().map(|node| node.parent.map_or(NO_NODE, |old| place[old as usize]));
        let addresses = ordered().filter_map(|node| node.address).collect();
        let lengths = ordered().map(|node| node.bytes).collect();
        Ok(EdgeList {
            shape: Shape::from_generated(parents.collect()),
            placement: (columns > 2).then(|| Placement::from_offsets(addresses)),
            lengths: (columns > 3).then_some(Lengths::Each(lengths)),
            names,
        })
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
