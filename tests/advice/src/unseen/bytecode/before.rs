//! A virtual machine with a stack, as of a scripting language.

#[derive(Clone, Copy)]
pub(super) enum Op {
    Push(i64),
    Load(usize),
    Store(usize),
    Add,
    Subtract,
    Multiply,
    Remainder,
    JumpIfZero(usize),
    Jump(usize),
    /// A function, and the number of its arguments.
    Call(usize, usize),
    Return,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Frame {
    pub(super) function: usize,
    pub(super) next: usize,
    base: usize,
}

pub(super) struct Machine {
    stack: Vec<i64>,
    frames: Vec<Frame>,
    pub(super) at: Frame,
}

impl Machine {
    pub(super) fn new(argument: i64) -> Self {
        Machine {
            stack: vec![argument, 0],
            frames: Vec::new(),
            at: Frame::default(),
        }
    }

    fn two(&mut self, operation: impl Fn(i64, i64) -> i64) {
        let (right, left) = (self.stack.pop().unwrap(), self.stack.pop().unwrap());
        self.stack.push(operation(left, right));
    }

    /// Executes an operation; returns the result of the program at its end.
    pub(super) fn step(&mut self, op: Op) -> Option<i64> {
        self.at.next += 1;
        match op {
            Op::Push(number) => self.stack.push(number),
            Op::Load(local) => self.stack.push(self.stack[self.at.base + local]),
            Op::Store(local) => self.stack[self.at.base + local] = self.stack.pop().unwrap(),
            Op::Add => self.two(i64::wrapping_add),
            Op::Subtract => self.two(i64::wrapping_sub),
            Op::Multiply => self.two(i64::wrapping_mul),
            Op::Remainder => self.two(i64::wrapping_rem),
            Op::JumpIfZero(to) if self.stack.pop() == Some(0) => self.at.next = to,
            Op::JumpIfZero(_) => {}
            Op::Jump(to) => self.at.next = to,
            Op::Call(function, arguments) => {
                self.frames.push(self.at);
                let base = self.stack.len() - arguments;
                self.at = Frame {
                    function,
                    next: 0,
                    base,
                };
            }
            Op::Return => {
                let result = self.stack.pop();
                let Some(caller) = self.frames.pop() else {
                    return result;
                };
                self.stack.truncate(self.at.base);
                self.stack.extend(result);
                self.at = caller;
            }
        }
        None
    }
}

/// `while n != 0 { sum = sum * 31 + gcd(n, 5040); n -= 1 }`, and `gcd`.
pub(super) fn program() -> Vec<Vec<Op>> {
    use Op::{
        Add, Call, Jump, JumpIfZero, Load, Multiply, Push, Remainder, Return, Store, Subtract,
    };
    #[rustfmt::skip]
    let main = vec![
        Load(0), JumpIfZero(15), Load(1), Push(31), Multiply, Load(0), Push(5040),
        Call(1, 2), Add, Store(1), Load(0), Push(1), Subtract, Store(0), Jump(0),
        Load(1), Return,
    ];
    #[rustfmt::skip]
    let gcd = vec![
        Load(1), JumpIfZero(9), Load(0), Load(1), Remainder, Load(1), Store(0), Store(1), Jump(0),
        Load(0), Return,
    ];
    vec![main, gcd]
}

pub fn run(size: usize) -> u64 {
    let (program, mut machine) = (program(), Machine::new(size as i64));
    loop {
        let op = program[machine.at.function][machine.at.next];
        if let Some(result) = machine.step(op) {
            return result as u64;
        }
    }
}
