//! Small versions of the figures: the numbers that do not depend on size, and the forms.

use super::show::start_up_markdown;
use super::start::start_up;
use super::*;

#[test]
fn stated_speedups_lie_above_the_formulas() {
    let stated = Stated {
        low: 0.08,
        high: 0.09,
        quote: "",
    };
    let [low, high] = stated.actual(71.0 / 39.0);
    assert!((low - 1.979).abs() < 1e-3 && (high - 2.001).abs() < 1e-3);
    // Underestimating by 8 % means being 8 % of the actual speedup below it.
    assert!((1.0 - 71.0 / 39.0 / low - 0.08).abs() < 1e-12);
}

#[test]
fn the_points_are_those_of_the_text() {
    let wanted = wanted(FigureOptions::FULL);
    let points: Vec<&Vec<Wanted>> = wanted.iter().map(|(_, _, _, points)| points).collect();
    let rates: Vec<f64> = points[0].iter().map(|point| point.formula_rate).collect();
    assert!((rates[0] - 0.571).abs() < 5e-4 && (rates[1] - 0.5).abs() < 1e-12);
    let coloured: Vec<u64> = points[1].iter().map(|point| point.coloured_nodes).collect();
    assert_eq!(coloured, [384, 768, 1536, 3072, 6144, 12_288, 24_576]);
    let [first, .., last] = points[2][..] else {
        panic!("{points:?}")
    };
    let nodes = [first, last].map(|point| nodes_of(point.levels));
    assert_eq!(nodes, [262_143, 4_194_303]);
    assert!(points[2].iter().all(|point| point.coloured_nodes == 24_576));
    assert_eq!(points[0][1].levels, 21);
}

#[test]
fn predictions_follow_the_simulation() {
    let coloured_nodes = 6144;
    for arrangement in [
        Arrangement::PackedRandom,
        Arrangement::PackedDepthFirst,
        Arrangement::Random { coloured_nodes },
        Arrangement::Clusters { coloured_nodes: 0 },
    ] {
        let (predicted, simulated) = cost(16, arrangement, 20_000);
        let ratio = predicted.cycles(0.0) / simulated.cycles(0.0);
        assert!((0.98..1.02).contains(&ratio), "{arrangement:?}: {ratio}");
        let ratio = predicted.tlb_misses / simulated.tlb_misses;
        assert!((0.98..1.02).contains(&ratio), "{arrangement:?}: {ratio}");
        assert!((simulated.nodes - 15.0).abs() < 0.05);
    }
}

#[test]
fn each_figure_is_a_table_and_two_files() {
    let figures = figures(FigureOptions {
        searches: 1000,
        levels: 10,
        swept_levels: (9, 10),
    });
    for figure in &figures {
        for row in &figure.rows {
            assert!((row.simulated.nodes - row.predicted.nodes).abs() < 0.2);
            assert!(row.formula_speedup >= 1.0);
            let is_stated =
                figure.number != "3-4" || ["depth-first", "subtree clusters"].contains(&row.layout);
            assert_eq!(row.stated.is_some(), is_stated);
        }
        // Two tables with a head of two lines each, the second with a line more for each size of
        // the random tree.
        let sizes = if figure.number == "3-6" { 2 } else { 1 };
        let markdown = figure.to_markdown();
        let rows = markdown.lines().filter(|line| line.starts_with('|'));
        assert_eq!(rows.count(), 4 + 2 * figure.rows.len() + sizes);
    }
    let folder = std::env::temp_dir().join(format!("ccmodel-figures-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let written = write_files(&folder, &figures).unwrap();
    assert_eq!(written.len(), 6);
    for path in written {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(['<', '{']), "{path:?}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{path:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(write_files(&folder.join("nowhere"), &figures).is_err());
}

#[test]
fn random_searches_start_below_the_worst_case() {
    let rows = start_up(14);
    let searches: Vec<u64> = rows.iter().map(|row| row.searches).collect();
    assert_eq!(searches, [1, 4, 16, 64, 256, 1024, 4096]);
    for row in &rows {
        assert!(row.expected <= row.worst_case + 1e-9, "{row:?}");
        assert!(row.counted <= row.worst_case + 1e-9, "{row:?}");
        if row.searches >= 256 {
            assert!((row.counted / row.expected - 1.0).abs() < 0.05, "{row:?}");
        }
    }
    let table = start_up_markdown(&rows);
    assert_eq!(table.matches("\n|").count(), 9);
}
