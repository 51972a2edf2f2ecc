//! All kinds in one vector, or areas beside the widgets.

use super::before::{Area, Button, Event, Label, WIDGETS, Widget, boxed, use_it, widget};
use fastrand::Rng;

enum Kind {
    Label(Label),
    Button(Button),
}

impl Kind {
    fn get(&self) -> &dyn Widget {
        match self {
            Kind::Label(it) => it,
            Kind::Button(it) => it,
        }
    }

    fn click(&mut self) {
        match self {
            Kind::Label(it) => it.click(),
            Kind::Button(it) => it.click(),
        }
    }
}

pub fn vector(size: usize) -> u64 {
    let mut random = Rng::with_seed(122);
    let mut new = || widget(&mut random, Kind::Label, Kind::Button);
    let mut widgets: Vec<Kind> = (0..WIDGETS).map(|_| new()).collect();
    use_it(size, |event| match event {
        Event::Click(x, y) => {
            let at = widgets
                .iter()
                .rposition(|it| it.get().area().contains(x, y));
            let Some(at) = at else { return 0 };
            let mut widget = widgets.remove(at);
            widget.click();
            widgets.push(widget);
            at as u64
        }
        Event::Draw => widgets
            .iter()
            .fold(0, |sum: u64, it| sum.rotate_left(1) ^ it.get().draw()),
    })
}

pub fn beside(size: usize) -> u64 {
    let mut random = Rng::with_seed(122);
    let mut new = || widget(&mut random, boxed, boxed);
    let mut widgets: Vec<Box<dyn Widget>> = (0..WIDGETS).map(|_| new()).collect();
    let mut areas: Vec<Area> = widgets.iter().map(|it| it.area().clone()).collect();
    use_it(size, |event| match event {
        Event::Click(x, y) => {
            let Some(at) = areas.iter().rposition(|it| it.contains(x, y)) else {
                return 0;
            };
            let (mut widget, area) = (widgets.remove(at), areas.remove(at));
            widget.click();
            widgets.push(widget);
            areas.push(area);
            at as u64
        }
        Event::Draw => widgets
            .iter()
            .fold(0, |sum: u64, it| sum.rotate_left(1) ^ it.draw()),
    })
}
