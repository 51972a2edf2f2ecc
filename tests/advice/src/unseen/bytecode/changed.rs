//! Operations of four bytes in place of 24.

use super::before::{Machine, Op, program};

#[derive(Clone, Copy)]
enum Small {
    Push(i16),
    Load(u8),
    Store(u8),
    JumpIfZero(u16),
    Jump(u16),
    Call(u8, u8),
    Add,
    Subtract,
    Multiply,
    Remainder,
    Return,
}

fn small(op: &Op) -> Small {
    match *op {
        Op::Push(number) => Small::Push(number as i16),
        Op::Load(local) => Small::Load(local as u8),
        Op::Store(local) => Small::Store(local as u8),
        Op::JumpIfZero(to) => Small::JumpIfZero(to as u16),
        Op::Jump(to) => Small::Jump(to as u16),
        Op::Call(function, arguments) => Small::Call(function as u8, arguments as u8),
        Op::Add => Small::Add,
        Op::Subtract => Small::Subtract,
        Op::Multiply => Small::Multiply,
        Op::Remainder => Small::Remainder,
        Op::Return => Small::Return,
    }
}

pub fn smaller(size: usize) -> u64 {
    let code = |code: Vec<Op>| code.iter().map(small).collect();
    let program: Vec<Vec<Small>> = program().into_iter().map(code).collect();
    let mut machine = Machine::new(size as i64);
    loop {
        let op = match program[machine.at.function][machine.at.next] {
            Small::Push(number) => Op::Push(number.into()),
            Small::Load(local) => Op::Load(local.into()),
            Small::Store(local) => Op::Store(local.into()),
            Small::JumpIfZero(to) => Op::JumpIfZero(to.into()),
            Small::Jump(to) => Op::Jump(to.into()),
            Small::Call(function, arguments) => Op::Call(function.into(), arguments.into()),
            Small::Add => Op::Add,
            Small::Subtract => Op::Subtract,
            Small::Multiply => Op::Multiply,
            Small::Remainder => Op::Remainder,
            Small::Return => Op::Return,
        };
        if let Some(result) = machine.step(op) {
            return result as u64;
        }
    }
}
