//! The sizes of nodes that can be placed, and their extents.

use crate::error::MorphError;
use ccmalloc::Region;
use ccmodel::NodeExtent;
use std::alloc::Layout;

/// The layout, if a node of it can be placed and is not empty. Others stay.
pub(crate) fn placeable(layout: Layout) -> Option<Layout> {
    Some(layout).filter(|&layout| matches!(node_extent(layout), Ok(Some(_))))
}

/// The extent to place a layout by, in granules of 8 bytes. `None` for no bytes.
///
/// Neither size nor alignment may exceed [`Region::OBJECT_BYTES_MAX`].
///
/// # Errors
/// [`MorphError::NodeTooLarge`], with the size rounded up to the alignment.
pub(crate) fn node_extent(layout: Layout) -> Result<Option<NodeExtent>, MorphError> {
    const GRANULE_BYTES: usize = 8;
    let (node_bytes, node_bytes_max) = (layout.pad_to_align().size(), Region::OBJECT_BYTES_MAX);
    let too_large = MorphError::NodeTooLarge {
        node_bytes,
        node_bytes_max,
    };
    if node_bytes == 0 {
        return Ok(None);
    }
    if node_bytes > node_bytes_max {
        return Err(too_large);
    }
    let bytes =
        u32::try_from(layout.size().next_multiple_of(GRANULE_BYTES)).map_err(|_| too_large)?;
    let align = u32::try_from(layout.align().max(GRANULE_BYTES)).map_err(|_| too_large)?;
    NodeExtent::new(bytes, align)
        .map(Some)
        .map_err(|_| too_large)
}

/// The [extent](node_extent) of the mean of these layouts, or of the largest. `None` for none.
pub(crate) fn extent_of_all(
    layouts: impl Iterator<Item = Layout>,
    is_largest: bool,
) -> Option<NodeExtent> {
    let (mut nodes, mut bytes, mut largest) = (0, 0, (0, 1));
    for layout in layouts {
        let Ok(Some(node)) = node_extent(layout) else {
            continue;
        };
        nodes += 1;
        bytes += node.stride_bytes();
        largest = (largest.0.max(node.bytes), largest.1.max(node.align));
    }
    let mean = u32::try_from(bytes.checked_div(nodes)?).ok()?;
    let (bytes, align) = if is_largest {
        largest
    } else {
        (mean.next_multiple_of(8), 8)
    };
    NodeExtent::new(bytes, align).ok()
}

#[cfg(test)]
mod tests {
    use super::{Layout, MorphError, NodeExtent, node_extent};

    #[test]
    fn neither_sizes_nor_alignments_above_a_page_are_placed() {
        let extent = |size, align| node_extent(Layout::from_size_align(size, align).unwrap());
        let placed = |bytes, align| Ok(Some(NodeExtent::new(bytes, align).unwrap()));
        let refused = |node_bytes| {
            Err(MorphError::NodeTooLarge {
                node_bytes,
                node_bytes_max: 4096,
            })
        };
        for (size, align, expected) in [
            (0, 1, Ok(None)),
            (0, 8192, Ok(None)),
            (1, 1, placed(8, 8)),
            (20, 4, placed(24, 8)),
            (24, 16, placed(24, 16)),
            (8, 4096, placed(8, 4096)),
            (4096, 4096, placed(4096, 4096)),
            (4090, 2, placed(4096, 8)),
            (8, 8192, refused(8192)),
            (4096, 8192, refused(8192)),
            (4097, 1, refused(4097)),
            (24, 1 << 40, refused(1 << 40)),
        ] {
            assert_eq!(extent(size, align), expected, "{size} bytes at {align}");
        }
    }
}
