//! Names of layouts, as the command line and the reports write them.

use super::Layout;
use std::fmt;
use std::str::FromStr;

/// The block size meant when a name gives none: a cache line.
const BLOCK_BYTES_DEFAULT: u32 = 64;
/// The seed meant when a name gives none.
const SEED_DEFAULT: u64 = 0;
const NAMES: [&str; 8] = [
    "random",
    "dfs",
    "bfs",
    "cluster",
    "veb",
    "cluster-veb",
    "hierarchical",
    "weighted",
];

/// The command line's name; it reads back as the same layout.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match *self {
            Layout::Random { seed } if seed != SEED_DEFAULT => f.pad(&format!("{name}:{seed}")),
            Layout::SubtreeCluster { block_bytes } | Layout::ClusterVanEmdeBoas { block_bytes }
                if block_bytes != BLOCK_BYTES_DEFAULT =>
            {
                f.pad(&format!("{name}:{block_bytes}"))
            }
            _ => f.pad(name),
        }
    }
}

/// Reads `random`, `dfs`, `bfs`, `cluster`, `veb`, `cluster-veb`, `hierarchical` or `weighted`; the two cluster layouts take a block size as in
/// `cluster:256` (64 bytes otherwise), `random` a seed as in `random:7` (0 otherwise).
impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Layout, ParseLayoutError> {
        let text = text.trim();
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        let wrong_suffix = |wanted| ParseLayoutError {
            text: text.to_owned(),
            kind: Kind::Suffix {
                name: name.to_owned(),
                wanted,
            },
        };
        let block_bytes = || match suffix {
            None => Ok(BLOCK_BYTES_DEFAULT),
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|&bytes| super::is_block_size(bytes))
                .ok_or_else(|| wrong_suffix("a block size that is a power of two from 8 to 65536")),
        };
        let seed = || match suffix {
            None => Ok(SEED_DEFAULT),
            Some(digits) => digits
                .parse()
                .map_err(|_| wrong_suffix("a whole number as seed")),
        };
        let plain = |layout| {
            if suffix.is_none() {
                Ok(layout)
            } else {
                Err(wrong_suffix("nothing"))
            }
        };
        match name {
            "random" => Ok(Layout::Random { seed: seed()? }),
            "dfs" => plain(Layout::DepthFirst),
            "bfs" => plain(Layout::BreadthFirst),
            "cluster" => Ok(Layout::SubtreeCluster {
                block_bytes: block_bytes()?,
            }),
            "veb" => plain(Layout::VanEmdeBoas),
            "hierarchical" => plain(Layout::Hierarchical),
            "weighted" => plain(Layout::Weighted),
            "cluster-veb" => Ok(Layout::ClusterVanEmdeBoas {
                block_bytes: block_bytes()?,
            }),
            _ => Err(ParseLayoutError {
                text: text.to_owned(),
                kind: Kind::Name {
                    nearest: nearest(name),
                },
            }),
        }
    }
}

impl Layout {
    /// The name without parameters, as in reports: `random`, `dfs`, `bfs`, `cluster`, `veb`, `cluster-veb`, `hierarchical` or
    /// `weighted`.
    pub fn name(&self) -> &'static str {
        match self {
            Layout::Random { .. } => "random",
            Layout::DepthFirst => "dfs",
            Layout::BreadthFirst => "bfs",
            Layout::SubtreeCluster { .. } => "cluster",
            Layout::VanEmdeBoas => "veb",
            Layout::ClusterVanEmdeBoas { .. } => "cluster-veb",
            Layout::Hierarchical => "hierarchical",
            Layout::Weighted => "weighted",
        }
    }
}

/// A text that names no [`Layout`]; its message says what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLayoutError {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Name { nearest: &'static str },
    Suffix { name: String, wanted: &'static str },
}

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match &self.kind {
            Kind::Name { nearest } => {
                write!(
                    f,
                    "unknown layout `{text}`, did you mean `{nearest}`? (known: {})",
                    NAMES.join(", ")
                )
            }
            Kind::Suffix { name, wanted } => write!(
                f,
                "bad layout `{text}`: `{name}` takes {wanted} after the name"
            ),
        }
    }
}

impl std::error::Error for ParseLayoutError {}

/// The known name with the fewest edits from `text`. Long spellings count as known too.
fn nearest(text: &str) -> &'static str {
    const SPELLINGS: [(&str, &str); 17] = [
        ("random", "random"),
        ("dfs", "dfs"),
        ("depth-first", "dfs"),
        ("depthfirst", "dfs"),
        ("bfs", "bfs"),
        ("breadth-first", "bfs"),
        ("breadthfirst", "bfs"),
        ("cluster", "cluster"),
        ("subtree-cluster", "cluster"),
        ("veb", "veb"),
        ("van-emde-boas", "veb"),
        ("cluster-veb", "cluster-veb"),
        ("clusterveb", "cluster-veb"),
        ("hierarchical", "hierarchical"),
        ("hierarchy", "hierarchical"),
        ("weighted", "weighted"),
        ("weights", "weighted"),
    ];
    // A cap on the length keeps the quadratic distance cheap for absurd input.
    let text: String = text.chars().take(40).collect::<String>().to_lowercase();
    SPELLINGS
        .iter()
        .min_by_key(|(spelling, _)| edits(&text, spelling))
        .map_or("veb", |&(_, name)| name)
}

/// Levenshtein distance: insertions, removals and replacements of characters that turn `a` into `b`.
pub(crate) fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}
