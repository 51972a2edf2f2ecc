//! How many blocks a set has room for, and what a victim cache adds to the cache above it.
//!
//! A victim cache holds what the cache above has evicted, in the order in which that happened, which is the order in which those blocks were
//! requested there last. So the two together hold the blocks that were requested last, as one cache with the room of both would, set by
//! set: of the blocks that fall into one set of the victim, those `ways` that were requested last and are not above, and those above.
//!
//! How many are above changes all the time. A set of the cache above is shared by several sets of the victim, and its ways are held by
//! blocks of each of them in proportion to how many it takes in. With `K` of them above, a block is forgotten when `ways + K` others
//! came, but for good: what was forgotten while `K` was small does not come back when it is larger. So what counts is the least `K` of a while,
//! and the least of two independent numbers comes near to it:
//!
//! | predicted against simulated (L1 4 KiB, L2 64 KiB, victim 2 MiB; 2^18 nodes of 32 B) | `K`, mean over sets | `K`, by set | least of two, by set |
//! |---|---|---|---|
//! | random order, breadth-first | -1.6 %, -2.0 % | -1.7 %, -1.8 % | -0.1 %, -0.2 % |
//! | clusters, depth-first, where few sets are met | +5.3 %, +4.5 % | -1.2 %, -1.5 % | +0.9 %, +0.1 % |

use super::sets::Room;
use crate::hierarchy::CacheLevel;

/// Shares of the sets above that are told apart.
const SHARES: u32 = 64;

/// The room of each group of sets.
pub(crate) struct Rooms {
    rooms: Vec<Room>,
    /// By group, the index of its room; empty where there is but one.
    of_group: Vec<u32>,
}

impl Rooms {
    /// All sets alike.
    pub(crate) fn alike(room: Room) -> Rooms {
        Rooms {
            rooms: vec![room],
            of_group: Vec::new(),
        }
    }

    /// For the victim cache `level` behind `above`, which takes in so many blocks of each of the victim's sets; groups that are no sets
    /// all get the mean.
    pub(crate) fn behind(above: &CacheLevel, level: &CacheLevel, taken_in: &[f64]) -> Rooms {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let ways = count(level.geometry.associativity());
        let above_ways = count(above.geometry.associativity());
        let (above_sets, sets) = (count(above.geometry.sets()), count(level.geometry.sets()));
        if above_sets > sets {
            return Rooms::alike(Room::exactly(ways + above_ways * (above_sets / sets)));
        }
        if taken_in.len() != sets {
            let chance = above_sets as f64 / sets as f64;
            return Rooms::alike(Room::with_more(ways, above_ways, chance));
        }
        let mut together = vec![0.0; above_sets];
        for (set, &taken_in) in taken_in.iter().enumerate() {
            together[set % above_sets] += taken_in;
        }
        let share_of = |(set, &taken_in): (usize, &f64)| -> u32 {
            let all = together[set % above_sets];
            let share = if all > 0.0 { taken_in / all } else { 0.0 };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the number of shares"
            )]
            let nearest = (share.clamp(0.0, 1.0) * f64::from(SHARES)).round() as u32;
            nearest
        };
        let room =
            |share: u32| Room::with_more(ways, above_ways, f64::from(share) / f64::from(SHARES));
        Rooms {
            rooms: (0..=SHARES).map(room).collect(),
            of_group: taken_in.iter().enumerate().map(share_of).collect(),
        }
    }

    /// How many different rooms there are.
    pub(crate) fn len(&self) -> usize {
        self.rooms.len()
    }

    /// Which of them a group has.
    pub(crate) fn index(&self, group: usize) -> usize {
        self.of_group.get(group).map_or(0, |&room| room as usize)
    }

    /// The room of this index.
    pub(crate) fn room(&self, index: usize) -> &Room {
        &self.rooms[index]
    }
}
