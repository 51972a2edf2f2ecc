//! Places one behind the other, for nodes of one size.

use super::{Layout, NodeExtent};

/// A cache line, as far as layouts are concerned.
pub(super) const LINE_BYTES: u64 = 64;

/// Bytes of a line that may stay unused to keep nodes from lying across its end.
const LINE_LEFT_BYTES_MAX: u64 = 8;

/// The places in memory for nodes of one size, numbered from 0 by ascending offset.
///
/// Gaps are at the ends of *rows* of equally many places: segments, which no node lies across, or
/// lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    bytes: u64,
    stride: u64,
    row_bytes: u64,
    row_places: u64,
    /// How many places at the start of the first row are left out.
    left_out: u64,
}

impl Grid {
    /// Without gaps, except at the ends of segments.
    pub(super) fn packed(node: NodeExtent) -> Grid {
        let (bytes, stride) = (u64::from(node.bytes), node.stride_bytes());
        let row_bytes = Layout::SEGMENT_BYTES;
        let rows =
            node.bytes <= Layout::SEGMENT_NODE_BYTES_MAX && !row_bytes.is_multiple_of(stride);
        // Where the stride exceeds a segment, so does the alignment: each node begins one.
        let (row_bytes, row_places) = if rows && stride < row_bytes {
            (row_bytes, (row_bytes - bytes) / stride + 1)
        } else {
            (stride, 1)
        };
        Grid {
            bytes,
            stride,
            row_bytes,
            row_places,
            left_out: 0,
        }
    }

    /// Lines, where these lose little by keeping each node to one; else [`packed`](Grid::packed).
    pub(super) fn in_lines(node: NodeExtent) -> Grid {
        let packed = Grid::packed(node);
        let row_places = LINE_BYTES / packed.stride;
        let left_bytes = LINE_BYTES - row_places * packed.stride;
        if row_places < 2 || left_bytes == 0 || left_bytes > LINE_LEFT_BYTES_MAX {
            return packed;
        }
        Grid {
            row_bytes: LINE_BYTES,
            row_places,
            ..packed
        }
    }

    /// How many nodes a line holds where the grid has lines of its own.
    pub(super) fn nodes_per_line(&self) -> Option<usize> {
        let has_lines = self.row_bytes == LINE_BYTES && self.row_places > 1;
        usize::try_from(self.row_places).ok().filter(|_| has_lines)
    }

    /// Limits the first row to `places` places.
    pub(super) fn with_first_row(self, places: u64) -> Grid {
        Grid {
            left_out: self.row_places.saturating_sub(places),
            ..self
        }
    }

    pub(super) fn stride_bytes(&self) -> u64 {
        self.stride
    }

    /// Where a node at `offset` ends.
    pub(super) fn end_of(&self, offset: u64) -> u64 {
        offset + self.bytes
    }

    /// The offset of a place.
    #[inline]
    pub(super) fn offset(&self, place: u32) -> u64 {
        let place = u64::from(place);
        if self.row_places == 1 {
            return place * self.row_bytes;
        }
        // The places left out are the first row's last, so that offsets begin at 0.
        let place = if self.left_out > 0 && place >= self.row_places - self.left_out {
            place + self.left_out
        } else {
            place
        };
        place / self.row_places * self.row_bytes + place % self.row_places * self.stride
    }
}
