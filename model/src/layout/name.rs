//! Names of layouts, as the command line and the reports write them.

use std::fmt;
use std::mem::discriminant;
use std::str::FromStr;

#[cfg(feature = "cli")]
use strsim::levenshtein;

use super::{HintPolicy, Layout};
use crate::Error;

/// Each layout with its default parameter, its name, and another spelling that is understood well
/// enough to suggest the name.
const NAMES: [(Layout, &str, &str); 11] = [
    (Layout::Random { seed: 0 }, "random", ""),
    (Layout::Allocated, "allocated", "malloc"),
    (
        Layout::Hinted {
            policy: HintPolicy::NewBlock,
        },
        "hinted",
        "ccmalloc",
    ),
    (Layout::DepthFirst, "dfs", "depth-first"),
    (Layout::Preorder, "preorder", ""),
    (Layout::BreadthFirst, "bfs", "breadth-first"),
    (
        Layout::SubtreeCluster { block_bytes: 64 },
        "cluster",
        "subtree-cluster",
    ),
    (Layout::VanEmdeBoas, "veb", "van-emde-boas"),
    (
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        "cluster-veb",
        "",
    ),
    (Layout::Hierarchical, "hierarchical", "hierarchy"),
    (Layout::Weighted, "weighted", "weights"),
];
const POLICIES: [(HintPolicy, &str); 3] = [
    (HintPolicy::Closest, "closest"),
    (HintPolicy::FirstFit, "first-fit"),
    (HintPolicy::NewBlock, "new-block"),
];

impl Layout {
    /// The name without parameters, as in reports: `random`, `allocated`, `hinted`, `dfs`,
    /// `preorder`, `bfs`, `cluster`, `veb`, `cluster-veb`, `hierarchical` or `weighted`.
    pub fn name(&self) -> &'static str {
        let mut names = NAMES.iter();
        let own = names.find(|(layout, ..)| discriminant(layout) == discriminant(self));
        own.map_or("", |&(_, name, _)| name)
    }
}

/// The command line's name; it reads back as the same layout.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let suffix = match *self {
            _ if NAMES.iter().any(|(layout, ..)| layout == self) => return f.pad(name),
            Layout::Random { seed } => seed.to_string(),
            Layout::SubtreeCluster { block_bytes } | Layout::ClusterVanEmdeBoas { block_bytes } => {
                block_bytes.to_string()
            }
            Layout::Hinted { policy } => {
                let mut policies = POLICIES.iter();
                let own = policies.find(|(other, _)| *other == policy);
                own.map_or_else(String::new, |&(_, name)| name.to_owned())
            }
            _ => return f.pad(name),
        };
        f.pad(&format!("{name}:{suffix}"))
    }
}

/// Reads a [name](Layout::name). The two cluster layouts take a block size as in `cluster:256` (64
/// bytes otherwise), `random` a seed as in `random:7` (0 otherwise), `hinted` a policy as in
/// `hinted:first-fit` (`closest`, `first-fit` or, otherwise, `new-block`).
impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Layout, Error> {
        let text = text.trim();
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        let Some(&(layout, ..)) = NAMES.iter().find(|(_, known, _)| *known == name) else {
            let spellings = NAMES.iter().flat_map(|&(_, name, other)| [name, other]);
            let nearest = nearest_of(name, spellings.filter(|spelling| !spelling.is_empty()));
            let mut names = NAMES.iter();
            let meant =
                names.find(|(_, name, other)| [Some(*name), Some(*other)].contains(&nearest));
            let advice = did_you_mean(meant.map(|&(_, name, _)| name));
            let known = NAMES.map(|(_, name, _)| name).join(", ");
            return Err(Error::new(format!(
                "unknown layout `{text}`{advice} (known: {known})"
            )));
        };
        let Some(suffix) = suffix else {
            return Ok(layout);
        };
        let block_bytes = suffix.parse().ok();
        let block_bytes = block_bytes
            .filter(|bytes: &u32| bytes.is_power_of_two() && (8..=65536).contains(bytes));
        let blocks = "a block size that is a power of two from 8 to 65536";
        let (layout, wanted) = match layout {
            Layout::Random { .. } => {
                let seed = suffix.parse().ok();
                (
                    seed.map(|seed| Layout::Random { seed }),
                    "a whole number as seed",
                )
            }
            Layout::SubtreeCluster { .. } => (
                block_bytes.map(|block_bytes| Layout::SubtreeCluster { block_bytes }),
                blocks,
            ),
            Layout::ClusterVanEmdeBoas { .. } => (
                block_bytes.map(|block_bytes| Layout::ClusterVanEmdeBoas { block_bytes }),
                blocks,
            ),
            Layout::Hinted { .. } => {
                let known = POLICIES.iter().find(|(_, name)| *name == suffix);
                let layout = known.map(|&(policy, _)| Layout::Hinted { policy });
                (layout, "closest, first-fit or new-block")
            }
            _ => (None, "nothing"),
        };
        let refusal = || format!("bad layout `{text}`: `{name}` takes {wanted} after the name");
        layout.ok_or_else(|| Error::new(refusal()))
    }
}

/// `, did you mean ..?`, or nothing.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!(", did you mean `{name}`?"))
}

/// Without the command line, only texts that a name begins with are near to it.
#[cfg(not(feature = "cli"))]
fn levenshtein(_: &str, _: &str) -> usize {
    usize::MAX
}

/// The one of `known` that begins with `text`, or else is most like it; `None` if none is.
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
        false => levenshtein(&text, known),
    };
    let nearest = known.into_iter().min_by_key(|known| edits(known))?;
    (edits(nearest) <= edits_max).then_some(nearest)
}
