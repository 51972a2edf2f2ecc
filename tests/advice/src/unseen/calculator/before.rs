//! A spreadsheet's formulas: each is read into a tree, calculated, and forgotten.

use fastrand::Rng;

pub(super) enum Formula {
    Number(i64),
    Cell(usize),
    Negated(Box<Formula>),
    Binary(u8, Box<Formula>, Box<Formula>),
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a [u8],
}

impl Parser<'_> {
    fn accept(&mut self, wanted: &[u8]) -> Option<u8> {
        let (&first, rest) = self.text.split_first()?;
        wanted.contains(&first).then(|| {
            self.text = rest;
            first
        })
    }

    fn number(&mut self) -> i64 {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit());
        let (number, rest) = self.text.split_at(digits.count());
        self.text = rest;
        number
            .iter()
            .fold(0, |sum, digit| 10 * sum + i64::from(digit - b'0'))
    }

    pub(super) fn sum(&mut self) -> Box<Formula> {
        let mut left = self.product();
        while let Some(operator) = self.accept(b"+-") {
            left = Box::new(Formula::Binary(operator, left, self.product()));
        }
        left
    }

    fn product(&mut self) -> Box<Formula> {
        let mut left = self.factor();
        while let Some(operator) = self.accept(b"*") {
            left = Box::new(Formula::Binary(operator, left, self.factor()));
        }
        left
    }

    fn factor(&mut self) -> Box<Formula> {
        match self.accept(b"(-$") {
            Some(b'(') => {
                let inner = self.sum();
                self.accept(b")");
                inner
            }
            Some(b'-') => Box::new(Formula::Negated(self.factor())),
            Some(_) => Box::new(Formula::Cell(self.number() as usize)),
            None => Box::new(Formula::Number(self.number())),
        }
    }
}

pub(super) fn calculate(formula: &Formula, cells: &[i64]) -> i64 {
    match formula {
        Formula::Number(number) => *number,
        Formula::Cell(cell) => cells[*cell],
        Formula::Negated(inner) => calculate(inner, cells).wrapping_neg(),
        Formula::Binary(operator, left, right) => {
            let [left, right] = [left, right].map(|part| calculate(part, cells));
            match operator {
                b'+' => left.wrapping_add(right),
                b'-' => left.wrapping_sub(right),
                _ => left.wrapping_mul(right),
            }
        }
    }
}

fn write(random: &mut Rng, depth: usize, text: &mut String) {
    match random.u8(..if depth == 0 { 3 } else { 9 }) {
        0 => *text += &random.u16(..).to_string(),
        1 | 2 => *text += &format!("${}", random.u8(..)),
        3 => {
            text.push('-');
            write(random, depth - 1, text);
        }
        which => {
            text.push('(');
            write(random, depth - 1, text);
            text.push(['+', '-', '*'][usize::from(which) % 3]);
            write(random, depth - 1, text);
            text.push(')');
        }
    }
}

/// The formulas of a sheet, some of which fill cells that others read.
pub(super) fn sheet(size: usize, value: impl Fn(&[u8], &[i64]) -> i64) -> u64 {
    let mut random = Rng::with_seed(132);
    let (mut cells, mut text) = (vec![1; 256], String::new());
    for _ in 0..size {
        text.clear();
        write(&mut random, 6, &mut text);
        cells[random.usize(..256)] = value(text.as_bytes(), &cells);
    }
    cells
        .iter()
        .fold(0, |sum: u64, &cell| sum.rotate_left(1) ^ cell as u64)
}

pub fn run(size: usize) -> u64 {
    sheet(size, |text, cells| calculate(&Parser { text }.sum(), cells))
}
