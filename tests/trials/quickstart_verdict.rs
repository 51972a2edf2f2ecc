//! The quickstart recommended by a measurement of 1721 ns where 138 were predicted, by rounds of a
//! loaded machine, and for a file of 12 nodes. The example runs this trial.

use super::{Figures, advice};

fn figures(rounds: [[f64; 7]; 5]) -> Vec<Figures> {
    let predicted = [880.0, 530.0, 310.0, 138.0, 310.0];
    let layouts = ["malloc", "hinted", "morphed", "ctree", "btreemap"];
    (layouts.into_iter().zip(rounds).zip(predicted))
        .map(|((layout, rounds), ns)| Figures {
            layout,
            rounds: rounds.to_vec(),
            band: (0.7 * ns, 1.4 * ns),
        })
        .collect()
}

const MEASURED: [f64; 5] = [877.0, 520.0, 343.0, 177.0, 349.0];
const MANY: usize = 1 << 21;

#[test]
fn what_agrees_is_recommended() {
    let text = advice(MANY, &figures(MEASURED.map(|ns| [ns; 7])));
    for part in [
        "FrozenCTreeMap` (5.0x)",
        "children)` on a tree",
        "(2.6x)",
        "(1.7x).",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let alike = advice(
        MANY,
        &figures([[700.0; 7], [680.0; 7], [420.0; 7], [190.0; 7], [300.0; 7]]),
    );
    assert!(
        !alike.contains("near(") && alike.contains("(1.7x)"),
        "{alike}"
    );
}

#[test]
fn small_inputs_are_told_to_be_small() {
    for nodes in [12, 20_000] {
        let text = advice(nodes, &figures(MEASURED.map(|ns| [ns; 7])));
        assert!(
            text.starts_with(&format!("No recommendation: {nodes} nodes fit")),
            "{text}"
        );
    }
}

#[test]
fn a_measurement_beside_the_prediction_recommends_nothing() {
    for row in 0..4 {
        for factor in [0.3, 3.0] {
            let mut measured = MEASURED;
            measured[row] *= factor;
            let text = advice(MANY, &figures(measured.map(|ns| [ns; 7])));
            assert!(text.starts_with("No recommendation: "), "{text}");
            assert!(
                text.contains("are predicted") && !text.contains("near("),
                "{text}"
            );
        }
    }
    let mut measured = MEASURED;
    measured[3] = 1721.0;
    let text = advice(MANY, &figures(measured.map(|ns| [ns; 7])));
    assert!(
        text.contains("`ctree` took 1721 ns where 97 to 193 are predicted"),
        "{text}"
    );
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
    assert!(
        text.starts_with("No recommendation: rounds of `malloc` differ"),
        "{text}"
    );
}
