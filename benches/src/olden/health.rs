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
//! More patients come than can be treated, so the waiting lists grow. Each step walks every list,
//! and each arrival walks to the end of its list, where its cell is allocated near the last one.
//! Patients keep their places while they move from list to list; their hint is the patient who came
//! before them in the same village. In a fresh heap allocators that serve memory in order do well
//! by accident: the patients of a step lie in the order of the villages.
//!
//! Unlike the original: patients and cells are freed; lists begin at a pointer, not at an empty
//! cell; cells are removed where the walk finds them. Sizes beyond the thesis's have three times
//! the [draws](Input::draws) and personnel, so that the lists outgrow a cache within seconds.
//!
//! As in the thesis, `ccmorph` lays the lists out every so many steps. To lay a patient out costs
//! as much as some dozens of visits that miss, so short runs have few layouts.

mod ledger;

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Links, Morph, MorphError, TreeNode, Visitor};

use super::{Olden, Size, check_equal};
use crate::chain::add_in_order;
use crate::placement::{Placement, address_of};
use crate::rng::Rng;

/// Villages directly below each that is no leaf.
const VILLAGES_BELOW: usize = 4;
/// Steps that an assessment takes.
const ASSESS_STEPS: u32 = 3;
/// Steps that a treatment takes.
const TREATMENT_STEPS: u32 = 10;
/// A draw brings a patient once in so many times.
const DRAWS_A_PATIENT: usize = 3;
/// An assessment sends a patient up once in so many times.
const ASSESSED_A_SENT_UP: usize = 10;

/// What to simulate; there is at least one level, and one step between layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Levels of villages, the root's included.
    pub levels: u32,
    /// Steps of time.
    pub steps: u32,
    /// Draws for new patients in each village and step, each of which brings one with a chance of
    /// one in three. There is as many times the original's personnel.
    pub draws: u32,
    /// Steps from one layout of the lists to the next, where that is asked for.
    pub steps_between_layouts: u32,
}

impl Input {
    /// Villages on all levels.
    pub fn villages(&self) -> usize {
        (0..self.levels)
            .map(|level| VILLAGES_BELOW.pow(level))
            .sum()
    }

    /// Personnel of a hospital with `levels_below` levels of villages below it: twice as many a
    /// level, as in the original.
    fn personnel(&self, levels_below: u32) -> u32 {
        self.draws << levels_below
    }
}

/// The random numbers of the village with this number; the root has 0, those directly below `n` are
/// `4n + 1` to `4n + 4`.
fn random_numbers(village: usize) -> Rng {
    Rng::new(Rng::new(village as u64).next_u64())
}

/// Whether a draw brings a patient.
fn brings_a_patient(rng: &mut Rng) -> bool {
    rng.below(DRAWS_A_PATIENT) == 0
}

/// Whether an assessment ends with the patient being sent up.
fn is_sent_up(rng: &mut Rng) -> bool {
    rng.below(ASSESSED_A_SENT_UP) == 0
}

/// 24 bytes, as in Olden on a 64-bit machine.
#[derive(Debug)]
struct Patient {
    /// In how many hospitals, the present one included.
    hospitals: u32,
    /// Steps since the patient fell ill, all of the assessment or treatment that is going on
    /// included.
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
    /// The cell before this one; null in the first. Only ever compared.
    #[parent]
    back: *const Cell,
    #[child]
    next: Option<Box<Cell>>,
}

const _: () = assert!(size_of::<Cell>() == 24);

/// Patients, first come first.
///
/// Invariant: each cell's `back` is the address of the cell before it, or null.
#[derive(Debug, Default)]
struct List {
    first: Option<Box<Cell>>,
}

impl List {
    /// Adds `patient` at the end, in a cell near the last one, or near `owner` when it is the
    /// first. Walks the whole list.
    #[inline]
    fn append<P: Placement>(&mut self, patient: Box<Patient>, placement: P, owner: *const Village) {
        let mut slot = &mut self.first;
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

    /// Removes the first patient.
    #[inline]
    fn pop_first(&mut self) -> Option<Box<Patient>> {
        unlink(&mut self.first)
    }

    /// Visits all patients, and moves those for whom `is_done` is true to `then`.
    #[inline]
    fn sweep<P: Placement>(
        &mut self,
        placement: P,
        mut is_done: impl FnMut(&mut Patient) -> bool,
        mut then: impl FnMut(Box<Patient>),
    ) {
        let mut slot = &mut self.first;
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

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        std::iter::successors(self.first.as_deref(), |cell| cell.next.as_deref())
    }

    /// Whether each cell knows the one before it.
    fn is_linked_back(&self) -> bool {
        let mut before: *const Cell = ptr::null();
        self.cells().all(|cell| {
            let linked = ptr::eq(cell.back, before);
            before = ptr::from_ref(cell);
            linked
        })
    }
}

impl Drop for List {
    /// Cell by cell, without a stack frame for each.
    fn drop(&mut self) {
        while self.pop_first().is_some() {}
    }
}

/// Takes the cell out of the list that it is in, frees it, and returns its patient.
#[inline]
fn unlink(slot: &mut Option<Box<Cell>>) -> Option<Box<Patient>> {
    let Cell {
        patient,
        back,
        next,
    } = *slot.take()?;
    *slot = next;
    if let Some(next) = slot {
        next.back = back;
    }
    Some(patient)
}

/// The hospital of a village.
#[derive(Debug)]
struct Hospital {
    personnel: u32,
    /// Personnel without a patient.
    free: u32,
    waiting: List,
    assess: List,
    inside: List,
    /// Those to be sent to the village above.
    up: List,
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
        patient.hospitals += 1;
        if self.free > 0 {
            self.free -= 1;
            self.assess(patient, placement, village);
        } else {
            self.waiting.append(patient, placement, village);
        }
    }

    /// Begins the assessment of a patient for whom there is personnel.
    fn assess<P: Placement>(
        &mut self,
        mut patient: Box<Patient>,
        placement: P,
        village: *const Village,
    ) {
        patient.time_left = ASSESS_STEPS;
        patient.time += ASSESS_STEPS;
        self.assess.append(patient, placement, village);
    }

    fn lists(&self) -> [&List; 4] {
        [&self.inside, &self.assess, &self.waiting, &self.up]
    }

    /// The lists in the order in which a step walks them, and the hint.
    fn parts_mut(&mut self) -> ([&mut List; 4], &mut *const Patient) {
        let lists = [
            &mut self.inside,
            &mut self.assess,
            &mut self.waiting,
            &mut self.up,
        ];
        (lists, &mut self.newest)
    }
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
    /// The village with number `number`, with `levels_below` levels below it.
    fn build<P: Placement>(
        input: &Input,
        number: usize,
        levels_below: u32,
        above: *const Village,
        placement: P,
    ) -> Box<Village> {
        let personnel = input.personnel(levels_below);
        let village = Village {
            below: [const { None }; VILLAGES_BELOW],
            above,
            hospital: Hospital {
                personnel,
                free: personnel,
                waiting: List::default(),
                assess: List::default(),
                inside: List::default(),
                up: List::default(),
                newest: ptr::null(),
            },
            rng: random_numbers(number),
        };
        let mut village = placement.new_near(village, above);
        if levels_below > 0 {
            let here = ptr::from_ref(&*village);
            let first = VILLAGES_BELOW * number + 1;
            for (child, number) in village.below.iter_mut().zip(first..) {
                *child = Some(Village::build(
                    input,
                    number,
                    levels_below - 1,
                    here,
                    placement,
                ));
            }
        }
        village
    }

    /// One step of time here and in all villages below. Patients who leave are added to `gone`.
    fn step<P: Placement>(&mut self, input: &Input, placement: P, gone: &mut Tally) {
        let here = ptr::from_ref(&*self);
        for child in self.below.iter_mut().flatten() {
            child.step(input, placement, gone);
            while let Some(patient) = child.hospital.up.pop_first() {
                self.hospital.admit(patient, placement, here);
            }
        }
        self.walk_lists(placement, gone);
        for _ in 0..input.draws {
            if brings_a_patient(&mut self.rng) {
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
        let hospital = &mut self.hospital;
        let is_done = |patient: &mut Patient| {
            patient.time_left -= 1;
            patient.time_left == 0
        };
        hospital.inside.sweep(placement, is_done, |patient| {
            hospital.free += 1;
            gone.add(patient.hospitals, patient.time, ptr::eq(patient.home, here));
        });
        hospital.assess.sweep(placement, is_done, |mut patient| {
            if is_sent_up(&mut self.rng) && !is_root {
                hospital.free += 1;
                hospital.up.append(patient, placement, here);
            } else {
                patient.time_left = TREATMENT_STEPS;
                patient.time += TREATMENT_STEPS;
                hospital.inside.append(patient, placement, here);
            }
        });
        while hospital.free > 0
            && let Some(patient) = hospital.waiting.pop_first()
        {
            hospital.free -= 1;
            hospital.assess(patient, placement, here);
        }
        let waits = |patient: &mut Patient| {
            patient.time += 1;
            false
        };
        hospital.waiting.sweep(placement, waits, drop);
    }

    /// Calls `f` for this village and all below, children before their parents, as a step visits
    /// them.
    fn for_each<'a>(&'a self, f: &mut impl FnMut(&'a Village)) {
        for child in self.below.iter().flatten() {
            child.for_each(f);
        }
        f(self);
    }

    /// As [`for_each`](Village::for_each), for the hospitals.
    fn for_each_hospital<'a>(&'a mut self, f: &mut impl FnMut(&'a mut Hospital)) {
        for child in self.below.iter_mut().flatten() {
            child.for_each_hospital(f);
        }
        f(&mut self.hospital);
    }
}

/// Sums over patients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    patients: u64,
    hospitals: u64,
    time: u64,
    /// Those in the hospital of the village that they came from.
    at_home: u64,
}

impl Tally {
    fn add(&mut self, hospitals: u32, time: u32, at_home: bool) {
        self.patients += 1;
        self.hospitals += u64::from(hospitals);
        self.time += u64::from(time);
        self.at_home += u64::from(at_home);
    }

    /// All of them, and those of `other`, in one number.
    fn digest(self, other: Tally) -> u64 {
        let parts =
            [self, other].map(|tally| [tally.patients, tally.hospitals, tally.time, tally.at_home]);
        let parts = parts.into_iter().flatten();
        parts.fold(0, add_in_order)
    }
}

/// The simulation. One run of [`work`](Olden::work) for each build.
#[derive(Debug)]
pub struct Health {
    /// Invariant: villages stay where they were built; patients hold their addresses.
    root: Box<Village>,
    /// Those who have left.
    gone: Tally,
}

impl Health {
    /// How many have left healthy.
    pub fn left(&self) -> u64 {
        self.gone.patients
    }

    /// Those who are in some hospital.
    fn present(&self) -> Tally {
        let mut present = Tally::default();
        self.root.for_each(&mut |village| {
            let lists = village.hospital.lists();
            for cell in lists.iter().flat_map(|list| list.cells()) {
                let patient = &*cell.patient;
                let at_home = ptr::eq(patient.home, village);
                present.add(patient.hospitals, patient.time, at_home);
            }
        });
        present
    }
}

impl Olden for Health {
    const NAME: &'static str = "health";
    // Patients and cells come and go in all lists at once.
    const POLICY: Policy = Policy::NewBlock;
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
        let villages = input.villages();
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
    ///
    /// # Panics
    /// When there are no levels, or no steps between layouts.
    fn build<P: Placement>(input: &Input, placement: P) -> Self {
        assert!(
            input.levels > 0 && input.steps_between_layouts > 0,
            "a country has a village: {input:?}"
        );
        Health {
            root: Village::build(input, 0, input.levels - 1, ptr::null(), placement),
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
            self.root.step(input, placement, &mut self.gone);
        }
        Ok(self.gone.digest(self.present()))
    }

    /// Against a ledger, which follows the same patients through queues; and the lists are linked
    /// both ways, and no personnel is lost.
    fn check(&self, input: &Input, result: u64) -> Result<(), String> {
        let expected = ledger::run(input);
        let (gone, present) = (self.gone, self.present());
        if (gone, present) != expected {
            return Err(format!(
                "{gone:?} have left and {present:?} are there, not {expected:?}"
            ));
        }
        check_equal(result, gone.digest(present))?;
        let mut wrong = Ok(());
        self.root.for_each(&mut |village| {
            let hospital = &village.hospital;
            let looked_after = hospital.assess.cells().chain(hospital.inside.cells());
            let looked_after = looked_after.count();
            if hospital.free as usize + looked_after != hospital.personnel as usize {
                wrong = Err(format!(
                    "{} free for {looked_after} patients, of {}",
                    hospital.free, hospital.personnel
                ));
            }
            if !hospital.lists().iter().all(|list| list.is_linked_back()) {
                wrong = Err("a cell does not know the one before it".to_owned());
            }
        });
        wrong
    }
}

/// The cells of all lists, as links for a morph.
struct AllCells<'v>(&'v mut Village);

impl Links for AllCells<'_> {
    type Link = Box<Cell>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Cell>>) {
        self.0.for_each_hospital(&mut |hospital| {
            for list in hospital.parts_mut().0 {
                list.first.show(visitor);
            }
        });
    }
}

/// The patients in all lists, as links for a morph, and the hints at them.
struct AllPatients<'v>(&'v mut Village);

impl Links for AllPatients<'_> {
    type Link = Box<Patient>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Patient>>) {
        self.0.for_each_hospital(&mut |hospital| {
            let (lists, newest) = hospital.parts_mut();
            for list in lists {
                let mut rest = list.first.as_deref_mut();
                while let Some(cell) = rest {
                    visitor.link(&mut cell.patient);
                    rest = cell.next.as_deref_mut();
                }
            }
            visitor.pointers(newest);
        });
    }
}
