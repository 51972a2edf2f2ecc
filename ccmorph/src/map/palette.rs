//! Colours for depths.
//!
//! Equal steps of depth should look like equal steps, to readers who see colours differently as
//! well, and in print. The scale is `viridis` (S. van der Walt and N. Smith, 2015, in the public
//! domain), sampled at nine points, with straight lines between them.

const POINTS: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2d, 0x7b],
    [0x3b, 0x52, 0x8b],
    [0x2c, 0x72, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x28, 0xae, 0x80],
    [0x5e, 0xc9, 0x62],
    [0xad, 0xdc, 0x30],
    [0xfd, 0xe7, 0x25],
];

/// The colour of `step` of `steps`, as `#rrggbb`; from dark to light.
pub(super) fn colour(step: u32, steps: u32) -> String {
    let last = steps.saturating_sub(1).max(1);
    // Where on the lines between the points, in parts of `last`.
    let at = u64::from(step.min(last)) * (POINTS.len() as u64 - 1);
    let last = u64::from(last);
    let (line, share) = (at / last, at % last);
    let mut points = (0..).zip(POINTS).skip_while(|&(number, _)| number < line);
    let low = points.next().map_or(POINTS[0], |(_, point)| point);
    let high = points.next().map_or(low, |(_, point)| point);
    let mut text = String::from("#");
    for (low, high) in low.into_iter().zip(high) {
        let mixed = u64::from(low) * (last - share) + u64::from(high) * share;
        text += &format!("{:02x}", (mixed + last / 2) / last);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::colour;

    #[test]
    fn the_ends_and_the_middle() {
        assert_eq!(
            (colour(0, 9), colour(8, 9)),
            ("#440154".into(), "#fde725".into())
        );
        assert_eq!(
            (colour(4, 9), colour(2, 5)),
            ("#21918c".into(), "#21918c".into())
        );
        assert_eq!(
            (colour(0, 1), colour(7, 3)),
            ("#440154".into(), "#fde725".into())
        );
        assert_eq!(colour(1, 17), "#461768");
    }
}
