//! The quickstart recommended a layout by a measurement of 1721 ns where 138 were predicted, by
//! rounds of a loaded machine, and for a file of 12 nodes. The example runs this trial.

use super::{Figures, advice};

fn figures(rounds: [[f64; 7]; 5]) -> Vec<Figures> {
    let predicted = [880.0, 530.0, 310.0, 138.0, 310.0];
    let layouts = ["malloc", "hinted", "morphed", "ctree", "btreemap"];
    (layouts.into_iter().zip(rounds).zip(predicted))
        .map(|((layout, mut rounds), ns)| {
            rounds.sort_by(f64::total_cmp);
            Figures {
                layout,
                rounds: rounds.to_vec(),
                band: (0.7 * ns, 1.4 * ns),
            }
        })
        .collect()
}

const MEASURED: [f64; 5] = [877.0, 520.0, 343.0, 177.0, 349.0];
const MANY: usize = 1 << 21;

/// The advice on `nodes` nodes when every round of each structure takes as long as in `measured`.
fn advice_on(nodes: usize, measured: [f64; 5]) -> String {
    advice(nodes, &figures(measured.map(|ns| [ns; 7])))
}

#[test]
fn what_agrees_is_recommended() {
    let text = advice_on(MANY, MEASURED);
    let parts = [
        "FrozenCTreeMap` (5.0x)",
        "children)` on a tree",
        "(2.6x)",
        "(1.7x).",
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let alike = advice_on(MANY, [700.0, 680.0, 420.0, 190.0, 300.0]);
    assert!(
        !alike.contains("near(") && alike.contains("(1.7x)"),
        "{alike}"
    );
}

#[test]
fn small_inputs_are_told_to_be_small() {
    for nodes in [12, 20_000] {
        let text = advice_on(nodes, MEASURED);
        let start = format!("No recommendation: {nodes} nodes fit");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn a_measurement_beside_the_prediction_recommends_nothing() {
    for (row, factor) in (0..4).flat_map(|row| [(row, 0.3), (row, 3.0)]) {
        let mut measured = MEASURED;
        measured[row] *= factor;
        let text = advice_on(MANY, measured);
        assert!(text.starts_with("No recommendation: "), "{text}");
        assert!(
            text.contains("are predicted") && !text.contains("near("),
            "{text}"
        );
    }
    let text = advice_on(MANY, [877.0, 520.0, 343.0, 1721.0, 349.0]);
    let why = "`ctree` took 1721 ns where 97 to 193 are predicted";
    assert!(text.contains(why), "{text}");
}

#[test]
fn rounds_that_spread_recommend_nothing() {
    let mut rounds = MEASURED.map(|ns| [ns; 7]);
    // One round at each end may be anything.
    (rounds[0][2], rounds[0][5]) = (5000.0, 300.0);
    let text = advice(MANY, &figures(rounds));
    assert!(text.contains("(5.0x)"), "{text}");
    rounds[0][0] = 1600.0;
    let text = advice(MANY, &figures(rounds));
    let start = "No recommendation: rounds of `malloc` differ";
    assert!(text.starts_with(start), "{text}");
}
