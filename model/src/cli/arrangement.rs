//! What can be asked for as a layout: those of [`Layout`], two that change more than an order, and
//! where nodes really lie.

use std::fmt;
use std::str::FromStr;

use crate::Layout;

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
        let layout = |name: &str| name.parse::<Layout>().map_err(|error| error.to_string());
        match text.split_once(':').unwrap_or((text, "")) {
            (COLOURED, "") => Err(format!(
                "bad layout `{text}`: the layout to colour follows, as in `{COLOURED}:cluster`"
            )),
            (COLOURED, name) => layout(name).map(Arrangement::Coloured),
            (ELIMINATED, "") => Ok(Arrangement::Eliminated),
            (GIVEN, "") => Ok(Arrangement::Given),
            (name @ (ELIMINATED | GIVEN), _) => Err(format!(
                "bad layout `{text}`: `{name}` takes nothing after the name"
            )),
            (name, _) => layout(text).map(Arrangement::Plain).map_err(|error| {
                // A name that is near to one of these is not near to a layout.
                let near = crate::layout::nearest_of(name, [COLOURED, ELIMINATED])
                    .filter(|known| known.starts_with(text.get(..4).unwrap_or("?")));
                near.map_or(error, |near| {
                    format!("unknown layout `{text}`, did you mean `{near}`?")
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_wrong_ones_get_advice() {
        let names = "veb cluster:256 hinted:first-fit coloured:cluster coloured:random:7 \
                     eliminated given";
        for name in names.split_whitespace() {
            assert_eq!(name.parse::<Arrangement>().unwrap().to_string(), name);
        }
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
