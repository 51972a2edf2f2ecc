//! Names of layouts, as the command line and the reports write them.

use super::{HintPolicy, Layout};
use std::fmt;
use std::str::FromStr;

/// The block size meant when a name gives none: a cache line.
const BLOCK_BYTES_DEFAULT: u32 = 64;
/// The seed meant when a name gives none.
const SEED_DEFAULT: u64 = 0;
const NAMES: [&str; 11] = [
    "random",
    "allocated",
    "hinted",
    "dfs",
    "preorder",
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
            Layout::Hinted { policy } if policy != HintPolicy::default() => {
                f.pad(&format!("{name}:{policy}"))
            }
            _ => f.pad(name),
        }
    }
}

/// Reads `random`, `allocated`, `hinted`, `dfs`, `preorder`, `bfs`, `cluster`, `veb`,
/// `cluster-veb`, `hierarchical` or `weighted`; the two cluster layouts take a block size as in
/// `cluster:256` (64 bytes otherwise), `random` a seed as in `random:7` (0 otherwise), `hinted` a
/// policy as in `hinted:first-fit` (`closest`, `first-fit` or, otherwise, `new-block`).
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
        let policy = || match suffix {
            None => Ok(HintPolicy::default()),
            Some(policy) => {
                parse_policy(policy).ok_or_else(|| wrong_suffix("closest, first-fit or new-block"))
            }
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
            "allocated" => plain(Layout::Allocated),
            "hinted" => Ok(Layout::Hinted { policy: policy()? }),
            "dfs" => plain(Layout::DepthFirst),
            "preorder" => plain(Layout::Preorder),
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
                kind: Kind::Name,
            }),
        }
    }
}

impl Layout {
    /// The name without parameters, as in reports: `random`, `allocated`, `hinted`, `dfs`,
    /// `preorder`, `bfs`, `cluster`, `veb`, `cluster-veb`, `hierarchical` or `weighted`.
    pub fn name(&self) -> &'static str {
        match self {
            Layout::Random { .. } => "random",
            Layout::Allocated => "allocated",
            Layout::Hinted { .. } => "hinted",
            Layout::DepthFirst => "dfs",
            Layout::Preorder => "preorder",
            Layout::BreadthFirst => "bfs",
            Layout::SubtreeCluster { .. } => "cluster",
            Layout::VanEmdeBoas => "veb",
            Layout::ClusterVanEmdeBoas { .. } => "cluster-veb",
            Layout::Hierarchical => "hierarchical",
            Layout::Weighted => "weighted",
        }
    }
}

impl fmt::Display for HintPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HintPolicy::Closest => "closest",
            HintPolicy::FirstFit => "first-fit",
            HintPolicy::NewBlock => "new-block",
        })
    }
}

/// The policy of this name.
fn parse_policy(text: &str) -> Option<HintPolicy> {
    [
        HintPolicy::Closest,
        HintPolicy::FirstFit,
        HintPolicy::NewBlock,
    ]
    .into_iter()
    .find(|policy| policy.to_string() == text)
}

/// A text that names no [`Layout`]; its message says what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLayoutError {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Suffix { name: String, wanted: &'static str },
}

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match &self.kind {
            Kind::Name => {
                write!(f, "unknown layout `{text}`")?;
                #[cfg(feature = "cli")]
                if let Some(nearest) = nearest(text.split(':').next().unwrap_or(text)) {
                    write!(f, ", did you mean `{nearest}`?")?;
                }
                write!(f, " (known: {})", NAMES.join(", "))
            }
            Kind::Suffix { name, wanted } => write!(
                f,
                "bad layout `{text}`: `{name}` takes {wanted} after the name"
            ),
        }
    }
}

impl std::error::Error for ParseLayoutError {}

/// The layout whose name, or another spelling of it, is most like `text`.
#[cfg(feature = "cli")]
fn nearest(text: &str) -> Option<&'static str> {
    const SPELLINGS: [(&str, &str); 8] = [
        ("malloc", "allocated"),
        ("ccmalloc", "hinted"),
        ("depth-first", "dfs"),
        ("breadth-first", "bfs"),
        ("subtree-cluster", "cluster"),
        ("van-emde-boas", "veb"),
        ("hierarchy", "hierarchical"),
        ("weights", "weighted"),
    ];
    let spellings = SPELLINGS.iter().map(|&(spelling, _)| spelling);
    let spelling = nearest_of(text, NAMES.into_iter().chain(spellings))?;
    let other = SPELLINGS.iter().find(|(other, _)| *other == spelling);
    NAMES
        .into_iter()
        .find(|name| *name == other.map_or(spelling, |(_, name)| name))
}

/// `, did you mean ..?` with the name that the text was meant for; empty if it is like none.
#[cfg(feature = "cli")]
pub(crate) fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_of(text, known).map_or(String::new(), |name| format!(", did you mean `{name}`?"))
}

/// The one of `known` that begins with `text`, or else is most like it; `None` if none is.
#[cfg(feature = "cli")]
pub(crate) fn nearest_of<'a>(
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A cap on the length bounds the quadratic time.
    let text: String = text.chars().take(40).collect::<String>().to_lowercase();
    let length = text.chars().count();
    let edits_max = (length / 3).max(2).min(length.saturating_sub(1));
    let edits = |known: &str| match length > 0 && known.starts_with(&text) {
        true => 0,
        false => strsim::levenshtein(&text, known),
    };
    let nearest = known.into_iter().min_by_key(|known| edits(known))?;
    (edits(nearest) <= edits_max).then_some(nearest)
}
