//! Syntax trees were advertised, but statements and expressions that own each other could not be
//! morphed: "expected `Stmt`, found `Expr`".

use ccmorph::{Layout, Morph, TreeNode, ccmorph};

#[derive(TreeNode)]
struct Stmt {
    #[child]
    value: Box<Expr>,
    #[child]
    next: Option<Box<Stmt>>,
}

#[derive(TreeNode)]
enum Expr {
    Number(i64),
    Sum(#[child] Box<Expr>, #[child] Box<Expr>),
    Block(#[child] Box<Stmt>),
}

impl Expr {
    fn value(&self) -> i64 {
        match self {
            Expr::Number(number) => *number,
            Expr::Sum(a, b) => a.value() + b.value(),
            Expr::Block(first) => first.run(),
        }
    }
}

impl Stmt {
    /// The sum of all statements from here on.
    fn run(&self) -> i64 {
        let mut sum = self.value.value();
        let mut at = self.next.as_deref();
        while let Some(statement) = at {
            sum += statement.value.value();
            at = statement.next.as_deref();
        }
        sum
    }
}

/// A program of `statements`, each a sum of a number and a block of one statement.
fn program(statements: i64) -> Box<Stmt> {
    let number = |number| Box::new(Expr::Number(number));
    let statement = |value, next| Stmt { value, next };
    let mut program = None;
    for n in 0..statements {
        let block = Box::new(Expr::Block(Box::new(statement(number(1), None))));
        program = Some(Box::new(statement(
            Box::new(Expr::Sum(number(n), block)),
            program,
        )));
    }
    program.expect("a statement at least")
}

#[test]
fn statements_and_expressions_move_as_one() {
    const STATEMENTS: i64 = 2000;
    let mut program = program(STATEMENTS);
    let before = program.run();
    // Statements, sums, numbers, blocks, their statements, their numbers.
    let nodes = 6 * usize::try_from(STATEMENTS).unwrap();
    for layout in [
        Layout::DepthFirst,
        Layout::BreadthFirst,
        Layout::Hierarchical,
    ] {
        let report = Morph::new()
            .layout(layout)
            .run(&mut program, Stmt::children)
            .unwrap();
        assert_eq!(
            (report.nodes, report.edges, report.placed),
            (nodes, nodes - 1, true)
        );
        assert_eq!(program.run(), before);
    }
    // Nodes of 16 and 24 bytes without gaps.
    let bytes = size_of::<Stmt>() * 2 + size_of::<Expr>() * 4;
    let bytes = (bytes * nodes / 6) as u64;
    let report = ccmorph(&mut program, Stmt::children).unwrap();
    assert!(
        (bytes..bytes + bytes / 500).contains(&report.span_bytes),
        "{report}"
    );
    assert!(report.near_after.same_page > nodes * 3 / 4, "{report}");
    assert_eq!(program.run(), before);
}
