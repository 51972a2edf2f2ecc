//! What can be asked for as a layout: those of [`Layout`], two that change more than an order, and
//! where nodes really lie.

use std::fmt;
use std::str::FromStr;

use crate::{Layout, ParseLayoutError};

/// A layout as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Nodes as they are, in an order.
    Plain(Layout),
    /// The hot nodes in a part of a cache of their own, each part in an order.
    Coloured(Layout),
    /// Without links: a complete tree in breadth-first order, in which places of children are
    /// computed.
    Eliminated,
    /// At the addresses that a file gives.
    Given,
}

const GIVEN: &str = "given";
const COLOURED: &str = "coloured";
const ELIMINATED: &str = "eliminated";

impl Arrangement {
    /// The order of the nodes; none where they are other nodes.
    pub(super) fn layout(self) -> Option<Layout> {
        match self {
            Arrangement::Plain(layout) | Arrangement::Coloured(layout) => Some(layout),
            Arrangement::Eliminated | Arrangement::Given => None,
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrangement::Plain(layout) => write!(f, "{layout}"),
            Arrangement::Coloured(layout) => write!(f, "{COLOURED}:{layout}"),
            Arrangement::Eliminated => f.write_str(ELIMINATED),
            Arrangement::Given => f.write_str(GIVEN),
        }
    }
}

/// The names of [`Layout`], such a name after `coloured:`, `eliminated` and `given`.
impl FromStr for Arrangement {
    type Err = String;

    fn from_str(text: &str) -> Result<Arrangement, String> {
        let text = text.trim();
        let message = |error: ParseLayoutError| error.to_string();
        match text.split_once(':') {
            Some((COLOURED, layout)) => {
                return Ok(Arrangement::Coloured(layout.parse().map_err(message)?));
            }
            Some((name @ (ELIMINATED | GIVEN), _)) => {
                return Err(format!(
                    "bad layout `{text}`: `{name}` takes nothing after the name"
                ));
            }
            _ => {}
        }
        match text {
            ELIMINATED => Ok(Arrangement::Eliminated),
            GIVEN => Ok(Arrangement::Given),
            COLOURED => Err(format!(
                "bad layout `{text}`: the layout to colour follows, as in `{COLOURED}:cluster`"
            )),
            _ => text.parse().map(Arrangement::Plain).map_err(|error| {
                // A name that is near to one of these is not near to a layout.
                let name = text.split(':').next().unwrap_or(text);
                let near = crate::layout::nearest_of(name, [COLOURED, ELIMINATED])
                    .filter(|known| known.starts_with(text.get(..4).unwrap_or("?")));
                match near {
                    Some(near) => format!("unknown layout `{text}`, did you mean `{near}`?"),
                    None => message(error),
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in [
            "veb",
            "cluster:256",
            "hinted:first-fit",
            "coloured:cluster",
            "coloured:random:7",
            "eliminated",
            "given",
        ] {
            let arrangement: Arrangement = name.parse().unwrap();
            assert_eq!(arrangement.to_string(), name);
        }
        assert_eq!(
            "coloured:dfs"
                .parse::<Arrangement>()
                .map(Arrangement::layout),
            Ok(Some(Layout::DepthFirst))
        );
        assert_eq!(Arrangement::Eliminated.layout(), None);
    }

    #[test]
    fn wrong_names_get_advice() {
        for (text, advice) in [
            ("vebb", "`veb`"),
            ("coloured", "coloured:cluster"),
            ("coloured:vebb", "`veb`"),
            ("coloured:eliminated", "unknown layout `eliminated`"),
            ("eliminated:3", "takes nothing"),
            ("eliminate", "`eliminated`"),
            ("colored:veb", "`coloured`"),
            ("", "unknown layout"),
        ] {
            let error = text.parse::<Arrangement>().unwrap_err();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
