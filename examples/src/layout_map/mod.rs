//! The example program `layout_map`: pictures of where nodes lie, before and after a morph.
//!
//! | structure | how it comes to be | morphed |
//! |---|---|---|
//! | `tree` | a search tree, keys in random order | in the layout that the model chooses |
//! | `list` | a list, after as many inserts and removals at random places as it has items | in the order of its walk |
//!
//! Both grow in a heap that is in use: there are as many other objects of their size, and with each
//! node that is made, eight of these, drawn at random, make room for new ones. So a node gets a
//! place that was freed somewhere, as in a program that has run for a while. In a fresh heap,
//! neighbours in time would be neighbours in memory, which flatters whatever is built in the order
//! of its use.

mod aged;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ccmodel::Layout;
use ccmorph::{Map, MapStyle, Morph, MorphError, TreeNode, map};

use crate::rng::Rng;
use crate::search_tree::SearchTree;
use aged::{OtherData, churned_list};

/// Nodes of each structure unless said otherwise: as many as fit a picture.
const NODES: usize = 2000;
const NODES_RANGE: std::ops::RangeInclusive<usize> = 10..=1_000_000;
/// Items of the list on the way that is drawn.
const LIST_STEPS: u32 = 20;
/// Other objects that are replaced before a node is made.
const TURNOVER: usize = 8;
const SEED: u64 = 7;

/// Reads the arguments, draws, and says what went wrong.
pub fn run_from_command_line() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let drawn = Arguments::parse(&arguments).and_then(|arguments| draw(&arguments));
    match drawn {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("layout_map: {error}");
            match error {
                Error::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

#[derive(Debug)]
struct Arguments {
    folder: PathBuf,
    nodes: usize,
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Arguments, Error> {
        let nodes = match arguments.get(1) {
            None => NODES,
            Some(text) => text
                .parse()
                .ok()
                .filter(|nodes| NODES_RANGE.contains(nodes))
                .ok_or_else(|| Error::Usage(text.clone()))?,
        };
        if let Some(extra) = arguments.get(2) {
            return Err(Error::Usage(extra.clone()));
        }
        let folder = arguments
            .first()
            .map_or("target/layout_map", String::as_str);
        Ok(Arguments {
            folder: folder.into(),
            nodes,
        })
    }
}

#[derive(Debug)]
enum Error {
    Usage(String),
    Morph(MorphError),
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(argument) => write!(
                f,
                "{argument}: arguments are a folder and a number of nodes from {} to {}",
                NODES_RANGE.start(),
                NODES_RANGE.end()
            ),
            Error::Morph(error) => error.fmt(f),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl From<MorphError> for Error {
    fn from(error: MorphError) -> Error {
        Error::Morph(error)
    }
}

fn draw(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { folder, nodes } = arguments;
    fs::create_dir_all(folder).map_err(|error| Error::File(folder.clone(), error))?;
    let mut rng = Rng::new(SEED);
    let mut others = OtherData::of(*nodes);

    let mut tree = SearchTree::new();
    while tree.len() < *nodes {
        others.turn_over(TURNOVER, &mut rng);
        tree.insert(rng.next_u64());
    }
    // The search for a node half way down: nodes are numbered level by level.
    let goal = u32::try_from(nodes / 2).unwrap_or(0);
    let subject = Subject {
        name: "tree",
        title: "random-insert search tree",
        goal,
        folder,
    };
    subject.draw(tree.root_mut(), Morph::new())?;

    let mut list = churned_list(*nodes, &mut rng, |rng| others.turn_over(TURNOVER, rng));
    let sum = list.checksum();
    let subject = Subject {
        name: "list",
        title: "churned list",
        goal: LIST_STEPS.min(goal),
        folder,
    };
    let in_order = Morph::new().layout(Layout::DepthFirst);
    subject.draw(list.first_mut(), in_order)?;
    assert_eq!(
        list.checksum(),
        sum,
        "a morph keeps the items and their order"
    );
    Ok(())
}

/// A structure to be drawn before and after.
struct Subject<'a> {
    name: &'a str,
    title: &'a str,
    /// The number of the node to which a search is drawn.
    goal: u32,
    folder: &'a Path,
}

impl Subject<'_> {
    fn draw<T: TreeNode<Link = Box<T>> + Unpin>(
        &self,
        root: &mut Option<Box<T>>,
        morph: Morph<'_>,
    ) -> Result<(), Error> {
        self.save(&map(root, T::children)?, "before", "as allocated")?;
        let report = morph.run(root, T::children)?;
        let after = format!("after the morph, layout {}", report.layout);
        self.save(&map(root, T::children)?, "after", &after)
    }

    fn save(&self, map: &Map, when: &str, how: &str) -> Result<(), Error> {
        let style = MapStyle::new()
            .title(format!("A {}, {how}", self.title))
            .path_to(self.goal);
        let path = self.folder.join(format!("{}-{when}.svg", self.name));
        fs::write(&path, map.to_svg(&style)).map_err(|error| Error::File(path.clone(), error))?;
        println!("{}, {how}: {}\n{map}\n", self.title, path.display());
        Ok(())
    }
}
