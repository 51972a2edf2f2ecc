//! Where do the nodes of a structure lie, and what does a morph change? Pictures of a search tree
//! and of a list, before and after.
//!
//! ```text
//! cargo run --release --example layout_map                    2000 nodes, in target/layout_map
//! cargo run --release --example layout_map -- FOLDER 10000    your folder, your number of nodes
//! cargo run --release --example layout_map -- docs/pictures   the pictures in docs/pictures
//! ```
//!
//! Both structures grow in a heap that is in use: before each insert, eight of as many other
//! objects are replaced, so a node gets a place that was freed somewhere.

use std::error::Error;
use std::path::{Path, PathBuf};

use ccmodel::Layout;
use ccmorph::{MapStyle, Morph, TreeNode, map};

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// A node of a search tree: 24 bytes.
#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

/// An item of a list: 24 bytes.
#[derive(TreeNode)]
struct Item {
    _data: [u64; 2],
    #[child]
    next: Option<Box<Item>>,
}

/// Other objects of the program.
struct OtherObjects {
    #[expect(clippy::vec_box, reason = "each is an allocation of its own")]
    objects: Vec<Box<[u64; 3]>>,
}

impl OtherObjects {
    fn turn_over(&mut self, rng: &mut fastrand::Rng) {
        for _ in 0..8 {
            let new = Box::new([rng.u64(..); 3]);
            let at = rng.usize(..self.objects.len());
            self.objects[at] = new;
        }
    }
}

fn tree(nodes: usize, others: &mut OtherObjects, rng: &mut fastrand::Rng) -> Option<Box<Node>> {
    let mut root: Option<Box<Node>> = None;
    for _ in 0..nodes {
        others.turn_over(rng);
        let key = rng.u64(..);
        let mut link = &mut root;
        while let Some(node) = link {
            link = if key < node.key {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        let (left, right) = (None, None);
        *link = Some(Box::new(Node { key, left, right }));
    }
    root
}

/// The link behind the first `items` items.
fn link_behind(mut link: &mut Option<Box<Item>>, items: usize) -> &mut Option<Box<Item>> {
    for _ in 0..items {
        link = &mut link.as_mut().expect("the list is longer").next;
    }
    link
}

/// A list that was filled at random places, and of which then each item was replaced on average.
fn list(items: usize, others: &mut OtherObjects, rng: &mut fastrand::Rng) -> Option<Box<Item>> {
    let mut first: Option<Box<Item>> = None;
    for inserted in 0..2 * items {
        if inserted >= items {
            let link = link_behind(&mut first, rng.usize(..items));
            let removed = link.take().expect("the list is longer");
            *link = removed.next;
        }
        others.turn_over(rng);
        let link = link_behind(&mut first, rng.usize(..=inserted.min(items - 1)));
        let (_data, next) = ([rng.u64(..), rng.u64(..)], link.take());
        *link = Some(Box::new(Item { _data, next }));
    }
    first
}

/// A picture of the structure with the path to the node numbered `goal`.
fn save<T: TreeNode<Link = Box<T>> + Unpin>(
    root: &mut Option<Box<T>>,
    path: &Path,
    title: String,
    goal: u32,
) -> Result<(), Box<dyn Error>> {
    let map = map(root, T::children)?;
    println!("{title}: {}\n{map}\n", path.display());
    let path_to = Some(goal);
    let style = MapStyle {
        title,
        path_to,
        ..MapStyle::default()
    };
    std::fs::write(path, map.to_svg(&style))?;
    Ok(())
}

fn draw<T: TreeNode<Link = Box<T>> + Unpin>(
    root: &mut Option<Box<T>>,
    folder: &Path,
    (name, title): (&str, &str),
    goal: u32,
    morph: Morph<'_>,
) -> Result<(), Box<dyn Error>> {
    let before = folder.join(format!("{name}-before.svg"));
    save(root, &before, format!("{title}, as allocated"), goal)?;
    let report = morph.run(root, T::children)?;
    let after = folder.join(format!("{name}-after.svg"));
    let title = format!("{title}, after the morph, layout {}", report.layout);
    save(root, &after, title, goal)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or("target/layout_map".to_owned()));
    let nodes = args.next().unwrap_or("2000".to_owned());
    let nodes = (nodes.parse::<u32>()).map_err(|error| format!("{nodes}: {error}"))?;
    if !(10..=1_000_000).contains(&nodes) {
        return Err(format!("{nodes}: from 10 to 1000000 nodes can be drawn").into());
    }
    std::fs::create_dir_all(&folder)?;

    let mut rng = fastrand::Rng::with_seed(7);
    let mut others = OtherObjects {
        objects: (0..nodes).map(|_| Box::new([0; 3])).collect(),
    };
    let mut root = tree(nodes as usize, &mut others, &mut rng);
    let names = ("tree", "A random-insert search tree");
    draw(&mut root, &folder, names, nodes / 2, Morph::new())?;

    let mut first = list(nodes as usize, &mut others, &mut rng);
    let names = ("list", "A churned list");
    let in_order = Morph::new().layout(Layout::DepthFirst);
    draw(&mut first, &folder, names, 20.min(nodes / 2), in_order)
}
