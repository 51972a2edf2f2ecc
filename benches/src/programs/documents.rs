//! JSON values and syntax trees: built, changed, dropped.

use std::fmt::Write as _;

use crate::rng::Rng;
use serde_json::Value;

use super::{Outcome, Scale, collect, live};

/// A document of about 2 MB is parsed, copied, changed, written and dropped.
pub(super) fn json(scale: Scale) -> Outcome {
    let text = document();
    Outcome::of(|sum| {
        for _ in 0..scale.of(12) {
            let mut value: Value = serde_json::from_str(&text).expect("the document is JSON");
            let copy = value.clone();
            change(&mut value);
            sum.add_bytes(value.to_string().as_bytes());
            drop(value);
            sum.add(copy.as_array().map_or(0, Vec::len) as u64);
        }
    })
}

/// Orders with lines, as a web service sends them.
fn document() -> String {
    let mut rng = Rng::new(8);
    let orders = collect(live(6000, 54), |number| {
        let lines = collect(1 + rng.below(6), |line| {
            serde_json::json!({
                "article": format!("{:08x}", rng.next_u64() >> 32),
                "amount": line + 1,
                "price": rng.below(100_000) as f64 / 100.0,
            })
        });
        let customer = serde_json::json!({
            "name": format!("Customer {}", rng.below(1000)),
            "vip": rng.below(10) == 0,
        });
        let note = match rng.below(3) {
            0 => Value::Null,
            _ => Value::from("-".repeat(rng.below(80))),
        };
        serde_json::json!({ "id": number, "customer": customer, "note": note, "lines": lines })
    });
    Value::from(orders).to_string()
}

/// Every second order loses its lines, every one gets a state, notes grow.
fn change(orders: &mut Value) {
    let orders = orders.as_array_mut().expect("the document is a list");
    for (number, order) in orders.iter_mut().enumerate() {
        if number % 2 == 0 {
            order["lines"] = Value::from(Vec::<Value>::new());
        }
        order["state"] = Value::from("accepted");
        if let Value::String(note) = &mut order["note"] {
            note.push_str(" (checked)");
        }
    }
}

#[derive(Clone, Debug)]
enum Expression {
    Number(u64),
    Variable(String),
    Negated(Box<Expression>),
    Binary(u8, Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
}

/// Expressions are parsed into trees of boxes and vectors, evaluated, rewritten and dropped.
pub(super) fn syntax_trees(scale: Scale) -> Outcome {
    let mut rng = Rng::new(9);
    let sources = collect(live(2000, 6), |_| {
        let mut text = String::new();
        write_expression(&mut rng, 7, &mut text);
        text
    });
    Outcome::of(|sum| {
        for _ in 0..scale.of(24) {
            let parse = |source: &String| Parser(source.as_bytes()).sum();
            let trees: Vec<Expression> = sources.iter().map(parse).collect();
            for tree in &trees {
                sum.add(evaluate(tree));
            }
            for tree in trees {
                let rewritten = rewrite(tree.clone());
                sum.add(evaluate(&rewritten));
                sum.add(evaluate(&tree));
            }
        }
    })
}

/// Writes a random expression of at most `depth` levels.
fn write_expression(rng: &mut Rng, depth: usize, text: &mut String) {
    let form = if depth == 0 { 0 } else { rng.below(8) };
    match form {
        0 => write!(text, "{}", rng.below(1000)).expect("a String takes all text"),
        1 => write!(text, "variable_{}", rng.below(50)).expect("a String takes all text"),
        2 => {
            text.push('-');
            write_expression(rng, depth - 1, text);
        }
        3 => {
            text.push_str("maximum(");
            for argument in 0..1 + rng.below(4) {
                if argument > 0 {
                    text.push(',');
                }
                write_expression(rng, depth - 1, text);
            }
            text.push(')');
        }
        _ => {
            text.push('(');
            write_expression(rng, depth - 1, text);
            text.push(['+', '-', '*'][rng.below(3)]);
            write_expression(rng, depth - 1, text);
            text.push(')');
        }
    }
}

/// A parser by recursive descent: what is left of a text of `write_expression`.
struct Parser<'a>(&'a [u8]);

impl Parser<'_> {
    fn next_if(&mut self, wanted: impl FnOnce(u8) -> bool) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        wanted(first).then(|| {
            self.0 = rest;
            first
        })
    }

    fn sum(&mut self) -> Expression {
        let is_sum = |byte| byte == b'+' || byte == b'-';
        let product = |parser: &mut Self| parser.binary(|byte| byte == b'*', Parser::atom);
        self.binary(is_sum, product)
    }

    fn binary(
        &mut self,
        is_operator: impl Fn(u8) -> bool,
        operand: impl Fn(&mut Self) -> Expression,
    ) -> Expression {
        let mut left = operand(self);
        while let Some(operator) = self.next_if(&is_operator) {
            left = Expression::Binary(operator, Box::new(left), Box::new(operand(self)));
        }
        left
    }

    fn atom(&mut self) -> Expression {
        if self.next_if(|byte| byte == b'-').is_some() {
            return Expression::Negated(Box::new(self.atom()));
        }
        if self.next_if(|byte| byte == b'(').is_some() {
            let inner = self.sum();
            self.next_if(|byte| byte == b')');
            return inner;
        }
        let mut name = String::new();
        while let Some(byte) = self.next_if(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            name.push(char::from(byte));
        }
        if let Ok(number) = name.parse() {
            return Expression::Number(number);
        }
        if self.next_if(|byte| byte == b'(').is_none() {
            return Expression::Variable(name);
        }
        let mut arguments = vec![self.sum()];
        while self.next_if(|byte| byte == b',').is_some() {
            arguments.push(self.sum());
        }
        self.next_if(|byte| byte == b')');
        Expression::Call(name, arguments)
    }
}

/// The value. That of a variable is the length of its name.
fn evaluate(expression: &Expression) -> u64 {
    match expression {
        Expression::Number(number) => *number,
        Expression::Variable(name) => name.len() as u64,
        Expression::Negated(inner) => evaluate(inner).wrapping_neg(),
        Expression::Binary(operator, left, right) => {
            combine(*operator, evaluate(left), evaluate(right))
        }
        Expression::Call(name, arguments) => {
            let largest = arguments.iter().map(evaluate).max();
            largest.unwrap_or(0).wrapping_add(name.len() as u64)
        }
    }
}

fn combine(operator: u8, left: u64, right: u64) -> u64 {
    match operator {
        b'+' => left.wrapping_add(right),
        b'-' => left.wrapping_sub(right),
        _ => left.wrapping_mul(right),
    }
}

/// Folds constants, undoes double negations and unwraps calls of one argument into sums.
fn rewrite(expression: Expression) -> Expression {
    match expression {
        Expression::Negated(inner) => match rewrite(*inner) {
            Expression::Negated(twice) => *twice,
            Expression::Number(number) => Expression::Number(number.wrapping_neg()),
            other => Expression::Negated(Box::new(other)),
        },
        Expression::Binary(operator, left, right) => match (rewrite(*left), rewrite(*right)) {
            (Expression::Number(left), Expression::Number(right)) => {
                Expression::Number(combine(operator, left, right))
            }
            (left, right) => Expression::Binary(operator, Box::new(left), Box::new(right)),
        },
        Expression::Call(name, arguments) if arguments.len() == 1 => {
            let constant = Expression::Number(name.len() as u64);
            let only = arguments.into_iter().map(rewrite).next();
            let only = only.unwrap_or(Expression::Number(0));
            Expression::Binary(b'+', Box::new(only), Box::new(constant))
        }
        Expression::Call(name, arguments) => {
            Expression::Call(name, arguments.into_iter().map(rewrite).collect())
        }
        other => other,
    }
}
