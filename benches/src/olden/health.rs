//! health: hospitals of a country in which patients wait in lists, are examined, treated, or sent
//! on to a larger hospital.
//!
//! Olden's simulation of the Colombian health care system: villages form a tree, four below each,
//! and every village has a hospital with four doubly linked lists of patients. In each step of
//! time, from the leaves up to the root,
//!
//! ```text
//! sent up by the four villages below ─┐
//! new patients of the village ────────┤   personnel free?
//!                                     ├── yes ──► assess, 3 steps
//!                                     │             ├── 9 of 10 ──► inside, 10 steps ──► freed
//!                                     │             └── 1 of 10 ──► up (at the root: inside)
//!                                     └── no ───► waiting ──► ...
//! ```
//!
//! The waiting lists grow. Each step walks every list, and each arrival walks to the end of its
//! list, where its cell is allocated near the last one. A patient's hint is the patient who came
//! before in the same village. As in the thesis, `ccmorph` lays the lists out every few steps.
//!
//! Unlike the original: patients and cells are freed; lists begin at a pointer, not at an empty
//! cell; cells are removed where the walk finds them. Sizes beyond the thesis's have three times
//! the [draws](Input::draws) and personnel, so that the lists outgrow a cache within seconds.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Links, Morph, MorphError, TreeNode, Visitor};

use super::{Olden, Size};
use crate::placement::{Placement, address_of};
use crate::queries::add_in_order;
use crate::rng::Rng;

/// Villages directly below each that is no leaf.
const VILLAGES_BELOW: usize = 4;
/// Steps that an assessment takes.
const ASSESS_STEPS: u32 = 3;
/// Steps that a treatment takes.
const TREATMENT_STEPS: u32 = 10;
/// One draw in this many brings a patient.
const DRAWS_A_PATIENT: usize = 3;
/// One assessment in this many sends the patient up.
const ASSESSED_A_SENT_UP: usize = 10;

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Levels of villages, the root's included; at least one.
    pub levels: u32,
    /// Steps of time.
    pub steps: u32,
    /// Draws for new patients in each village and step. The personnel is this many times that of
    /// the original.
    pub draws: u32,
    /// Steps from one layout of the lists to the next, where that is asked for; at least one.
    pub steps_between_layouts: u32,
}

/// 24 bytes, as in Olden on a 64-bit machine.
#[derive(Debug)]
struct Patient {
    /// Hospitals that the patient has been in, including this one.
    hospitals: u32,
    /// Steps since the patient fell ill, including all of the current assessment or treatment.
    time: u32,
    /// Steps that the assessment or treatment still takes.
    time_left: u32,
    /// The village that the patient came from; only ever compared.
    home: *const Village,
}

const _: () = assert!(size_of::<Patient>() == 24);

/// One element of a list: 24 bytes.
#[derive(Debug, TreeNode)]
struct Cell {
    patient: Box<Patient>,
    /// The address of the cell before this one, or null; never read.
    #[parent]
    back: *const Cell,
    #[child]
    next: List,
}

const _: () = assert!(size_of::<Cell>() == 24);

/// Patients, first come first.
type List = Option<Box<Cell>>;

/// Adds `patient` at the end of the list in `slot`, in a cell near the last one, or near `owner`
/// when it is the first. Walks the whole list.
#[inline]
fn append<P: Placement>(
    mut slot: &mut List,
    patient: Box<Patient>,
    placement: P,
    owner: *const Village,
) {
    let mut back: *const Cell = ptr::null();
    // In one step, the borrow checker would keep `slot` for the caller.
    while slot.is_some() {
        if let Some(cell) = slot {
            placement.prefetch(address_of(&cell.next));
            back = ptr::from_ref(&**cell);
            slot = &mut cell.next;
        }
    }
    let cell = Cell {
        patient,
        back,
        next: None,
    };
    let near = if back.is_null() { owner.cast() } else { back };
    *slot = Some(placement.new_near(cell, near));
}

/// Visits all patients of the list in `slot`, and moves those for whom `is_done` is true to `then`.
#[inline]
fn sweep<P: Placement>(
    mut slot: &mut List,
    placement: P,
    mut is_done: impl FnMut(&mut Patient) -> bool,
    mut then: impl FnMut(Box<Patient>),
) {
    while let Some(cell) = slot {
        placement.prefetch(address_of(&cell.next));
        if is_done(&mut cell.patient) {
            if let Some(patient) = unlink(slot) {
                then(patient);
            }
        } else {
            slot = &mut slot.as_mut().expect("looked at just now").next;
        }
    }
}

/// Takes the first cell out of the list, frees it, and returns its patient.
#[inline]
fn unlink(list: &mut List) -> Option<Box<Patient>> {
    let cell = *list.take()?;
    *list = cell.next;
    if let Some(next) = list {
        next.back = cell.back;
    }
    Some(cell.patient)
}

/// The hospital of a village.
#[derive(Debug)]
struct Hospital {
    /// Personnel without a patient.
    free: u32,
    /// Those inside, in assessment, waiting, and to be sent up: the order of a step's walk.
    lists: [List; 4],
    /// The address of the last patient of this village, maybe freed: a hint, never read.
    newest: *const Patient,
}

impl Hospital {
    /// Takes in a patient who has arrived at `village`.
    fn admit<P: Placement>(
        &mut self,
        mut patient: Box<Patient>,
        placement: P,
        village: *const Village,
    ) {
        let [_, assess, waiting, _] = &mut self.lists;
        patient.hospitals += 1;
        if self.free > 0 {
            self.free -= 1;
            begin_assessment(assess, patient, placement, village);
        } else {
            append(waiting, patient, placement, village);
        }
    }
}

/// Begins the assessment of a patient for whom there is personnel.
fn begin_assessment<P: Placement>(
    assess: &mut List,
    mut patient: Box<Patient>,
    placement: P,
    village: *const Village,
) {
    patient.time_left = ASSESS_STEPS;
    patient.time += ASSESS_STEPS;
    append(assess, patient, placement, village);
}

/// A village, with those below it.
#[derive(Debug)]
struct Village {
    below: [Option<Box<Village>>; VILLAGES_BELOW],
    /// The village above; null at the root. Only ever compared.
    above: *const Village,
    hospital: Hospital,
    rng: Rng,
}

impl Village {
    /// The village called `number`, with `levels_below` levels below it. The root is 0, and those
    /// directly below `n` are `4n + 1` to `4n + 4`.
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
                // Twice as many a level, as in the original.
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

    /// One step of time here and in all villages below. Patients who leave are added to `gone`.
    fn step<P: Placement>(&mut self, draws: u32, placement: P, gone: &mut Tally) {
        let here = ptr::from_ref(&*self);
        for child in self.below.iter_mut().flatten() {
            child.step(draws, placement, gone);
            while let Some(patient) = unlink(&mut child.hospital.lists[3]) {
                self.hospital.admit(patient, placement, here);
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
                self.hospital.admit(patient, placement, here);
            }
        }
    }

    /// Walks the lists: treated patients go home, assessed ones are treated or sent up, and waiting
    /// ones are assessed while there is personnel.
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
                append(up, patient, placement, here);
            } else {
                patient.time_left = TREATMENT_STEPS;
                patient.time += TREATMENT_STEPS;
                append(inside, patient, placement, here);
            }
        });
        while *free > 0
            && let Some(patient) = unlink(waiting)
        {
            *free -= 1;
            begin_assessment(assess, patient, placement, here);
        }
        let waits = |patient: &mut Patient| {
            patient.time += 1;
            false
        };
        sweep(waiting, placement, waits, drop);
    }

    /// Calls `f` for the hospitals here and in all villages below, children before their parents,
    /// as a step visits them.
    fn for_each_hospital<'a>(&'a mut self, f: &mut impl FnMut(*const Village, &'a mut Hospital)) {
        let here = ptr::from_ref(&*self);
        for child in self.below.iter_mut().flatten() {
            child.for_each_hospital(f);
        }
        f(here, &mut self.hospital);
    }
}

/// Sums over patients: how many they are, the hospitals that they have been in, their time, and how
/// many are in the hospital of the village that they came from.
type Tally = [u64; 4];

fn add(tally: &mut Tally, patient: &Patient, village: *const Village) {
    let at_home = u64::from(ptr::eq(patient.home, village));
    let (hospitals, time) = (u64::from(patient.hospitals), u64::from(patient.time));
    let parts = tally.iter_mut().zip([1, hospitals, time, at_home]);
    parts.for_each(|(sum, part)| *sum += part);
}

/// The simulation.
#[derive(Debug)]
pub struct Health {
    /// Invariant: villages stay where they were built; patients hold their addresses.
    root: Box<Village>,
    /// Those who have left.
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
    type Input = Input;

    /// The thesis's three levels and 3000 steps have 21 villages and, in the end, some 15,000
    /// patients. `Large` has 87,381 villages and some 2.6 million patients, 134 MB with their cells
    /// and villages.
    fn input(size: Size) -> Input {
        let (levels, steps, draws, steps_between_layouts) = match size {
            Size::Tiny => (5, 100, 3, 25),
            Size::Thesis => (3, 3000, 1, 375),
            Size::Quick => (7, 64, 3, 32),
            Size::Large => (9, 40, 3, 20),
        };
        Input {
            levels,
            steps,
            draws,
            steps_between_layouts,
        }
    }

    /// Villages, and the patients and cells that there are in the end.
    fn nodes(input: &Input) -> Vec<(Layout, usize)> {
        let villages = (0..input.levels).map(|level| VILLAGES_BELOW.pow(level));
        let villages: usize = villages.sum();
        let draws = villages * input.steps as usize * input.draws as usize;
        // One draw in three brings a patient. Each draw has one of the personnel, who are busy with
        // a patient for some twelve steps, so a quarter of those who come can be looked after.
        let patients = draws / 4;
        vec![
            (Layout::new::<Village>(), villages),
            (Layout::new::<Patient>(), patients),
            (Layout::new::<Cell>(), patients),
        ]
    }

    /// Builds the villages; the hospitals are empty.
    fn build<P: Placement>(input: &Input, placement: P) -> Self {
        let levels_below = input.levels - 1;
        Health {
            root: Village::build(input.draws, 0, levels_below, ptr::null(), placement),
            gone: Tally::default(),
        }
    }

    /// Lays all lists out, cells and patients, each in the order of a step's walk; villages stay
    /// where they are.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        morph.run(&mut AllCells(&mut self.root), Cell::children)?;
        morph.run(&mut AllPatients(&mut self.root), |_, _| {})?;
        Ok(())
    }

    fn work<P: Placement>(
        &mut self,
        input: &Input,
        placement: P,
        relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        for step in 1..=input.steps {
            if let Some(morph) = relayout
                && step % input.steps_between_layouts == 0
                && step < input.steps
            {
                self.morph(morph)?;
            }
            self.root.step(input.draws, placement, &mut self.gone);
        }
        let mut present = Tally::default();
        self.root.for_each_hospital(&mut |village, hospital| {
            for list in &hospital.lists {
                let cells = std::iter::successors(list.as_deref(), |cell| cell.next.as_deref());
                cells.for_each(|cell| add(&mut present, &cell.patient, village));
            }
        });
        let parts = [self.gone, present].into_iter().flatten();
        Ok(parts.fold(0, add_in_order))
    }
}

/// The cells of all lists, as links for a morph.
struct AllCells<'v>(&'v mut Village);

impl Links for AllCells<'_> {
    type Link = Box<Cell>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Cell>>) {
        let show = &mut |_, hospital: &'a mut Hospital| hospital.lists.show(visitor);
        self.0.for_each_hospital(show);
    }
}

/// The patients in all lists, as links for a morph, and the hints at them.
struct AllPatients<'v>(&'v mut Village);

impl Links for AllPatients<'_> {
    type Link = Box<Patient>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Patient>>) {
        self.0.for_each_hospital(&mut |_, hospital| {
            for list in &mut hospital.lists {
                let mut rest = list.as_deref_mut();
                while let Some(cell) = rest {
                    visitor.link(&mut cell.patient);
                    rest = cell.next.as_deref_mut();
                }
            }
            visitor.pointers(&mut hospital.newest);
        });
    }
}
