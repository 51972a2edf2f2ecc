//! health: Olden's simulation of the Colombian health care system, with patients in lists.
//!
//! Villages form a tree, four below each, and each has a hospital with four doubly linked lists. In
//! each step of time, from the leaves up, new patients and those sent up from below are assessed
//! for 3 steps if there is personnel, or wait. Of ten, nine are treated for 10 steps and freed, and
//! one is sent up. Each step walks every list, and each arrival walks to the end of its list, where
//! its cell is allocated near the last one. A patient's hint is the one before in the village.
//!
//! Unlike in the original, patients and cells are freed, lists begin at a pointer, and cells are
//! removed where the walk finds them. Sizes beyond the thesis's have three times the draws and
//! personnel, so that the lists outgrow a cache within seconds.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Links, Morph, MorphError, TreeNode, Visitor};

use super::{Olden, Size};
use crate::placement::{Placement, address_of};
use crate::queries::add_in_order;
use crate::rng::Rng;
use crate::structures::lists::{self, Link, unlink, values, walk};

const VILLAGES_BELOW: usize = 4;
const ASSESS_STEPS: u32 = 3;
const TREATMENT_STEPS: u32 = 10;
/// One draw in this many brings a patient.
const DRAWS_A_PATIENT: usize = 3;
/// One assessment in this many sends the patient up.
const ASSESSED_A_SENT_UP: usize = 10;

struct Patient {
    hospitals: u32,
    /// Since the patient fell ill, to the end of the current assessment or treatment.
    time: u32,
    /// Steps of the assessment or treatment that are left.
    time_left: u32,
    /// Only ever compared.
    home: *const Village,
}

const _: () = assert!(size_of::<Patient>() == 24);

type Cell = Link<Box<Patient>>;

type List = lists::List<Box<Patient>>;

/// Where a village's cells are allocated, and the village.
type Here<P> = (P, *const Village);

/// Walks the list in `slot`, and adds `patient` in a cell near the last one, or near `owner`.
#[inline]
fn append<P: Placement>(slot: &mut List, patient: Box<Patient>, (placement, owner): Here<P>) {
    let (slot, prev) = walk(slot, |cell| {
        placement.prefetch(address_of(&cell.next));
        true
    });
    let cell = Cell {
        value: patient,
        prev,
        next: None,
    };
    let near = if prev.is_null() { owner.cast() } else { prev };
    *slot = Some(placement.new_near(cell, near));
}

/// Visits all patients of the list in `slot`; those for whom `is_done` is true go to `then`.
#[inline]
fn sweep<P: Placement>(
    mut slot: &mut List,
    placement: P,
    mut is_done: impl FnMut(&mut Patient) -> bool,
    mut then: impl FnMut(Box<Patient>),
) {
    while let Some(cell) = slot {
        placement.prefetch(address_of(&cell.next));
        if is_done(&mut cell.value) {
            if let Some(patient) = unlink(slot) {
                then(patient);
            }
        } else {
            slot = &mut slot.as_mut().expect("looked at just now").next;
        }
    }
}

struct Hospital {
    free: u32,
    /// Those inside, in assessment, waiting, and to be sent up: the order of a step's walk.
    lists: [List; 4],
    /// The last patient of this village, maybe freed: a hint, never read.
    newest: *const Patient,
}

impl Hospital {
    fn admit<P: Placement>(&mut self, mut patient: Box<Patient>, here: Here<P>) {
        let [_, assess, waiting, _] = &mut self.lists;
        patient.hospitals += 1;
        if self.free > 0 {
            self.free -= 1;
            begin_assessment(assess, patient, here);
        } else {
            append(waiting, patient, here);
        }
    }
}

fn begin_assessment<P: Placement>(assess: &mut List, mut patient: Box<Patient>, here: Here<P>) {
    patient.time_left = ASSESS_STEPS;
    patient.time += ASSESS_STEPS;
    append(assess, patient, here);
}

struct Village {
    below: [Option<Box<Village>>; VILLAGES_BELOW],
    /// Null at the root; only ever compared.
    above: *const Village,
    hospital: Hospital,
    rng: Rng,
}

impl Village {
    /// The villages directly below number `n` are `4n + 1` to `4n + 4`.
    fn build<P: Placement>(
        draws: u32,
        number: usize,
        levels_below: u32,
        above: *const Village,
        placement: P,
    ) -> Box<Village> {
        let village = Village {
            below: [const { None }; VILLAGES_BELOW],
            above,
            hospital: Hospital {
                // As in the original.
                free: draws << levels_below,
                lists: [const { None }; 4],
                newest: ptr::null(),
            },
            rng: Rng::new(Rng::new(number as u64).next_u64()),
        };
        let mut village = placement.new_near(village, above);
        if let Some(levels_below) = levels_below.checked_sub(1) {
            let here = ptr::from_ref(&*village);
            for (child, number) in village.below.iter_mut().zip(VILLAGES_BELOW * number + 1..) {
                *child = Some(Village::build(draws, number, levels_below, here, placement));
            }
        }
        village
    }

    /// A step of time here and in all villages below; tallies the patients who leave.
    fn step<P: Placement>(&mut self, draws: u32, placement: P, gone: &mut Tally) {
        let here = ptr::from_ref(&*self);
        for child in self.below.iter_mut().flatten() {
            child.step(draws, placement, gone);
            while let Some(patient) = unlink(&mut child.hospital.lists[3]) {
                self.hospital.admit(patient, (placement, here));
            }
        }
        self.walk_lists(placement, gone);
        for _ in 0..draws {
            if self.rng.below(DRAWS_A_PATIENT) == 0 {
                let patient = Patient {
                    hospitals: 0,
                    time: 0,
                    time_left: 0,
                    home: here,
                };
                let patient = placement.new_near(patient, self.hospital.newest);
                self.hospital.newest = ptr::from_ref(&*patient);
                self.hospital.admit(patient, (placement, here));
            }
        }
    }

    /// Treated patients go home, assessed ones are treated or sent up, and waiting ones are
    /// assessed while there is personnel.
    fn walk_lists<P: Placement>(&mut self, placement: P, gone: &mut Tally) {
        let here = ptr::from_ref(&*self);
        let is_root = self.above.is_null();
        let Hospital { free, lists, .. } = &mut self.hospital;
        let [inside, assess, waiting, up] = lists;
        let is_done = |patient: &mut Patient| {
            patient.time_left -= 1;
            patient.time_left == 0
        };
        sweep(inside, placement, is_done, |patient| {
            *free += 1;
            add(gone, &patient, here);
        });
        sweep(assess, placement, is_done, |mut patient| {
            if self.rng.below(ASSESSED_A_SENT_UP) == 0 && !is_root {
                *free += 1;
                append(up, patient, (placement, here));
            } else {
                patient.time_left = TREATMENT_STEPS;
                patient.time += TREATMENT_STEPS;
                append(inside, patient, (placement, here));
            }
        });
        while *free > 0
            && let Some(patient) = unlink(waiting)
        {
            *free -= 1;
            begin_assessment(assess, patient, (placement, here));
        }
        let waits = |patient: &mut Patient| {
            patient.time += 1;
            false
        };
        sweep(waiting, placement, waits, drop);
    }

    /// Calls `f` for all hospitals from here down, in the order of a step.
    fn for_each_hospital<'a>(&'a mut self, f: &mut impl FnMut(*const Village, &'a mut Hospital)) {
        let here = ptr::from_ref(&*self);
        for child in self.below.iter_mut().flatten() {
            child.for_each_hospital(f);
        }
        f(here, &mut self.hospital);
    }
}

/// Sums over patients: their number, the hospitals that they have been in, their time, and how many
/// are in the hospital of their own village.
type Tally = [u64; 4];

fn add(tally: &mut Tally, patient: &Patient, village: *const Village) {
    let at_home = u64::from(ptr::eq(patient.home, village));
    let (hospitals, time) = (u64::from(patient.hospitals), u64::from(patient.time));
    let parts = tally.iter_mut().zip([1, hospitals, time, at_home]);
    parts.for_each(|(sum, part)| *sum += part);
}

pub struct Health {
    /// Invariant: villages stay where they were built; patients hold their addresses.
    root: Box<Village>,
    gone: Tally,
}

impl Olden for Health {
    const NAME: &'static str = "health";
    // Patients and cells come and go in all lists at once.
    const POLICY: Policy = Policy::NewBlock;
    const RESULTS: [u64; 4] = [
        16_897_079_419_103_615_332,
        15_060_956_400_167_619_203,
        9_953_704_105_189_773_424,
        18_188_832_674_453_337_240,
    ];
    /// Levels of villages, at least one; steps of time; draws for new patients in each village and
    /// step, of which the original has one; and steps from one layout of the lists to the next.
    type Input = [u32; 4];

    /// The thesis's size ends with some 15,000 patients, `Large` with 2.6 million: 134 MB.
    fn input(size: Size) -> [u32; 4] {
        match size {
            Size::Tiny => [5, 100, 3, 25],
            Size::Thesis => [3, 3000, 1, 375],
            Size::Quick => [7, 64, 3, 32],
            Size::Large => [9, 40, 3, 20],
        }
    }

    /// Patients and cells are those in the end.
    fn nodes(&[levels, steps, draws, _]: &[u32; 4]) -> Vec<(Layout, usize)> {
        let villages = (0..levels).map(|level| VILLAGES_BELOW.pow(level));
        let villages: usize = villages.sum();
        let draws = villages * steps as usize * draws as usize;
        // Each draw has one of the personnel, busy with a patient for some twelve steps, and one in
        // three brings a patient: a quarter can be looked after.
        let patients = draws / 4;
        vec![
            (Layout::new::<Village>(), villages),
            (Layout::new::<Patient>(), patients),
            (Layout::new::<Cell>(), patients),
        ]
    }

    fn build<P: Placement>(&[levels, _, draws, _]: &[u32; 4], placement: P) -> Self {
        Health {
            root: Village::build(draws, 0, levels - 1, ptr::null(), placement),
            gone: Tally::default(),
        }
    }

    /// Cells and patients, each in the order of a step's walk; villages stay where they are.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        morph.run(&mut AllCells(&mut self.root), Cell::children)?;
        morph.run(&mut AllPatients(&mut self.root), |_, _| {})?;
        Ok(())
    }

    fn work<P: Placement>(
        &mut self,
        &[_, steps, draws, steps_between_layouts]: &[u32; 4],
        placement: P,
        relayout: impl Fn(&mut Self),
    ) -> u64 {
        for step in 1..=steps {
            if step % steps_between_layouts == 0 && step < steps {
                relayout(self);
            }
            self.root.step(draws, placement, &mut self.gone);
        }
        let mut present = Tally::default();
        self.root.for_each_hospital(&mut |village, hospital| {
            for list in &hospital.lists {
                values(list).for_each(|patient| add(&mut present, patient, village));
            }
        });
        let parts = [self.gone, present].into_iter().flatten();
        parts.fold(0, add_in_order)
    }
}

struct AllCells<'v>(&'v mut Village);

impl Links for AllCells<'_> {
    type Link = Box<Cell>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Cell>>) {
        let show = &mut |_, hospital: &'a mut Hospital| hospital.lists.show(visitor);
        self.0.for_each_hospital(show);
    }
}

/// The patients in all lists, and the hints at them.
struct AllPatients<'v>(&'v mut Village);

impl Links for AllPatients<'_> {
    type Link = Box<Patient>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Patient>>) {
        self.0.for_each_hospital(&mut |_, hospital| {
            for list in &mut hospital.lists {
                let mut rest = list.as_deref_mut();
                while let Some(cell) = rest {
                    visitor.link(&mut cell.value);
                    rest = cell.next.as_deref_mut();
                }
            }
            visitor.pointers(&mut hospital.newest);
        });
    }
}
