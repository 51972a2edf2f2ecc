//! A window system: widgets of several kinds behind a trait, drawn from back to front.

use fastrand::Rng;
use std::ops::Range;

#[derive(Clone)]
pub(super) struct Area {
    x: Range<i32>,
    y: Range<i32>,
}

impl Area {
    pub(super) fn contains(&self, x: i32, y: i32) -> bool {
        self.x.contains(&x) && self.y.contains(&y)
    }
}

pub(super) trait Widget {
    fn area(&self) -> &Area;
    /// Returns what is drawn, as a number.
    fn draw(&self) -> u64;
    fn click(&mut self);
}

pub(super) struct Label {
    area: Area,
    text: String,
}

pub(super) struct Button {
    area: Area,
    text: String,
    presses: u64,
}

impl Widget for Label {
    fn area(&self) -> &Area {
        &self.area
    }

    fn draw(&self) -> u64 {
        self.area.x.start as u64 ^ self.text.len() as u64
    }

    fn click(&mut self) {}
}

impl Widget for Button {
    fn area(&self) -> &Area {
        &self.area
    }

    fn draw(&self) -> u64 {
        self.area.y.start as u64 ^ self.text.len() as u64 ^ self.presses << 8
    }

    fn click(&mut self) {
        self.presses += 1;
    }
}

/// One of the two kinds, made what a desktop has.
pub(super) fn widget<W>(
    random: &mut Rng,
    label: impl Fn(Label) -> W,
    button: impl Fn(Button) -> W,
) -> W {
    let (x, y) = (random.i32(0..1900), random.i32(0..1000));
    let text = format!("at {x}, {y}");
    let (x, y) = (x..x + random.i32(8..40), y..y + random.i32(8..30));
    let (area, presses) = (Area { x, y }, 0);
    match random.bool() {
        true => label(Label { area, text }),
        #[rustfmt::skip]
        false => button(Button { area, text, presses }),
    }
}

pub(super) fn boxed(widget: impl Widget + 'static) -> Box<dyn Widget> {
    Box::new(widget)
}

pub(super) const WIDGETS: usize = 2000;

struct Desktop {
    widgets: Vec<Box<dyn Widget>>,
}

impl Desktop {
    /// The topmost widget at a place gets the click, and comes to the front.
    fn click(&mut self, x: i32, y: i32) -> u64 {
        let at = self.widgets.iter().rposition(|it| it.area().contains(x, y));
        let Some(at) = at else { return 0 };
        let mut widget = self.widgets.remove(at);
        widget.click();
        self.widgets.push(widget);
        at as u64
    }

    fn draw(&self) -> u64 {
        let drawn = self.widgets.iter().map(|it| it.draw());
        drawn.fold(0, |sum: u64, it| sum.rotate_left(1) ^ it)
    }
}

pub(super) enum Event {
    Click(i32, i32),
    Draw,
}

/// Clicks, with some moves of the hand that draw all.
pub(super) fn use_it(size: usize, mut event: impl FnMut(Event) -> u64) -> u64 {
    let mut random = Rng::with_seed(121);
    (0..size).fold(0, |sum: u64, _| {
        let (x, y) = (random.i32(0..1900), random.i32(0..1000));
        let next = match random.u8(..4) {
            0 => Event::Draw,
            _ => Event::Click(x, y),
        };
        sum.rotate_left(1) ^ event(next)
    })
}

pub fn run(size: usize) -> u64 {
    let mut random = Rng::with_seed(122);
    let mut new = || widget(&mut random, boxed, boxed);
    let mut desktop = Desktop {
        widgets: (0..WIDGETS).map(|_| new()).collect(),
    };
    use_it(size, |event| match event {
        Event::Click(x, y) => desktop.click(x, y),
        Event::Draw => desktop.draw(),
    })
}
