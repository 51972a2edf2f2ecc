//! A syntax tree that is walked was laid out for searches: its pages became worse, and the report
//! promised "345 -> 319 ns a search".

use ccmorph::{Layout, Morph, Operation, TreeNode, Verdict};

/// 40 bytes, as many expressions are.
#[derive(TreeNode)]
struct Expression {
    value: i64,
    operator: char,
    #[child]
    left: Option<Box<Expression>>,
    #[child]
    right: Option<Box<Expression>>,
}

/// Parses sums of products with parentheses, as a recursive descent does: operands come first.
struct Parser {
    state: u64,
}

impl Parser {
    fn next(&mut self, below: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (self.state >> 33) % below
    }

    fn operand(&mut self, depth: u32) -> Box<Expression> {
        if depth == 0 || self.next(4) == 0 {
            let value = self.next(1000).cast_signed();
            return Box::new(Expression {
                value,
                operator: '#',
                left: None,
                right: None,
            });
        }
        self.sum(depth - 1)
    }

    fn sum(&mut self, depth: u32) -> Box<Expression> {
        let mut left = self.operand(depth);
        for _ in 0..1 + self.next(3) {
            let right = self.operand(depth);
            let operator = if self.next(2) == 0 { '+' } else { '-' };
            let (left_link, right) = (Some(left), Some(right));
            left = Box::new(Expression {
                value: 0,
                operator,
                left: left_link,
                right,
            });
        }
        left
    }
}

fn evaluate(expression: &Expression) -> i64 {
    let operand = |link: &Option<Box<Expression>>| link.as_deref().map_or(0, evaluate);
    match expression.operator {
        '+' => operand(&expression.left).wrapping_add(operand(&expression.right)),
        '-' => operand(&expression.left).wrapping_sub(operand(&expression.right)),
        _ => expression.value,
    }
}

#[test]
fn a_walk_is_not_promised_the_gain_of_a_search() {
    let mut tree = Parser { state: 1 }.sum(12);
    let value = evaluate(&tree);

    // Nothing is said of the operation: the report knows nothing of walks, and says so.
    let untold = Morph::new()
        .predict(true)
        .run(&mut tree, Expression::children)
        .unwrap();
    assert!(untold.nodes > 50_000, "{}", untold.nodes);
    assert_eq!(
        (untold.operation, untold.verdict()),
        (None, Verdict::Unknown)
    );
    assert!(
        untold.to_string().contains("of walks it says nothing"),
        "{untold}"
    );

    // From the search's layout to the walk's.
    let morph = Morph::new().operation(Operation::Walk).predict(true);
    let report = morph.run(&mut tree, Expression::children).unwrap();
    assert_eq!(report.layout, Layout::Preorder);
    assert_ne!(report.verdict(), Verdict::Worse);
    assert_eq!(evaluate(&tree), value);

    // The second time there is nothing to gain, and it is not done.
    let again = morph.run(&mut tree, Expression::children).unwrap();
    assert_eq!(again.verdict(), Verdict::Same, "{again}");
    assert!(again.to_string().contains("ns a walk"), "{again}");
}

#[test]
fn a_walk_keeps_its_pages() {
    let mut tree = Parser { state: 1 }.sum(12);
    let morph = Morph::new().operation(Operation::Walk).predict(true);
    let report = morph.run(&mut tree, Expression::children).unwrap();
    let (before, after) = (report.near_before, report.near_after);
    assert!(after.same_page >= before.same_page, "{report}");
    assert!(after.same_64 >= before.same_64, "{report}");
    // All but the steps over a page's end.
    assert!(after.same_page * 50 > report.edges * 49, "{report}");
    // It was parsed in one go, so that it lay well: no gain is promised.
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
}
