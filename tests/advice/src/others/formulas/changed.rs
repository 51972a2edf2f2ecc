//! The formulas in the order of evaluation.

use super::before::Formula::{self, Choice, Number, Product, Sum, Variable};
use super::before::{grown, score};
use crate::morph as new_morph;
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    let mut formulas = grown(size);
    let morph = new_morph().operation(Operation::Walk);
    let done = morph.run(&mut formulas, |formula, visit| match formula {
        Number(_) | Variable(_) => {}
        Sum(a, b) | Product(a, b) => {
            visit(a);
            visit(b);
        }
        Choice(a, b, c) => {
            visit(a);
            visit(b);
            visit(c);
        }
    });
    done.expect("memory for the nodes");
    score(|at, variables| formulas[at].value(variables))
}

enum Code {
    Number(u64),
    Variable(usize),
    Sum,
    Product,
    /// Skips so much if the value is odd.
    Otherwise(usize),
    Skip(usize),
}

/// Code for a machine with a stack.
pub fn idea(size: usize) -> u64 {
    let compiled = |formula: &Formula| {
        let mut code = Vec::new();
        compile(formula, &mut code);
        code
    };
    let codes: Vec<_> = grown(size).iter().map(|it| compiled(it)).collect();
    score(|at, variables| execute(&codes[at], variables))
}

fn compile(formula: &Formula, code: &mut Vec<Code>) {
    match formula {
        Number(number) => code.push(Code::Number(*number)),
        Variable(at) => code.push(Code::Variable(*at)),
        Sum(a, b) => {
            compile(a, code);
            compile(b, code);
            code.push(Code::Sum);
        }
        Product(a, b) => {
            compile(a, code);
            compile(b, code);
            code.push(Code::Product);
        }
        Choice(condition, yes, no) => {
            compile(condition, code);
            let start = code.len();
            code.push(Code::Otherwise(0));
            compile(yes, code);
            let end = code.len();
            code.push(Code::Skip(0));
            compile(no, code);
            code[start] = Code::Otherwise(end - start);
            code[end] = Code::Skip(code.len() - 1 - end);
        }
    }
}

fn execute(code: &[Code], variables: &[u64]) -> u64 {
    let (mut stack, mut at) = (Vec::new(), 0);
    let pop = |stack: &mut Vec<u64>| stack.pop().expect("code leaves a value for each operand");
    while let Some(step) = code.get(at) {
        at += 1;
        let value = match *step {
            Code::Number(number) => number,
            Code::Variable(at) => variables[at],
            Code::Sum => pop(&mut stack).wrapping_add(pop(&mut stack)),
            Code::Product => (pop(&mut stack) | 1).wrapping_mul(pop(&mut stack)),
            Code::Otherwise(skipped) => {
                at += skipped * (pop(&mut stack) % 2) as usize;
                continue;
            }
            Code::Skip(skipped) => {
                at += skipped;
                continue;
            }
        };
        stack.push(value);
    }
    pop(&mut stack)
}
