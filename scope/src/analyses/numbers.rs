//! The counts of a site: name, unit, meaning, and where each is in a [`Site`].
//!
//! Parquet, the page and the table in `docs/inside/ccscope-format.md` are made from this one; JSON
//! has the same names, those of the fields. What other profilers' formats weigh stacks by is
//! `exports::Weight`.

use crate::profile::Site;

/// A whole number that each site has.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its name in JSON, Parquet, the page and the documents.
    pub name: &'static str,
    /// What one of it is; bytes are usable ones where the meaning says nothing else.
    pub unit: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// Whether it is known only where accesses were recorded.
    pub needs_accesses: bool,
    /// Its value.
    pub of: fn(&Site) -> u64,
}

macro_rules! numbers {
    ($($name:ident $unit:literal $meaning:literal $($accesses:ident)?;)*) => {
        &[$(Number {
            name: stringify!($name),
            unit: $unit,
            meaning: $meaning,
            needs_accesses: numbers!(@ $($accesses)?),
            of: |site| site.$name.into(),
        },)*]
    };
    (@) => { false };
    (@ accesses) => { true };
}

/// All of them. Lifetimes and what needs accesses take in chunks alive at the end, as if they had
/// died there.
pub const NUMBERS: &[Number] = numbers! {
    allocations "chunks" "allocated in the run";
    frees "chunks" "freed by the program";
    requested "bytes" "asked for, in all chunks of the run";
    usable "bytes" "given by the allocator for these";
    smallest "bytes" "asked for in the smallest chunk";
    largest "bytes" "asked for in the largest chunk";
    peak_usable "bytes" "alive at the site's own peak";
    peak_chunks "chunks" "the most alive at a time";
    peak_time "events" "when the site had its peak";
    at_peak_usable "bytes" "alive at the peak of the process";
    at_peak_requested "bytes" "asked for in the chunks that were alive then";
    at_peak_chunks "chunks" "alive then";
    at_peak_touched "bytes" "of these that were touched at any time" accesses;
    end_usable "bytes" "alive at the end";
    end_chunks "chunks" "alive at the end";
    first_time "events" "when the first chunk was allocated";
    last_time "events" "when the last chunk was allocated";
    reallocs "calls" "of `realloc`";
    moved_bytes "bytes" "that `realloc` copied";
    longest_chain "calls" "of `realloc`, the most for one object";
    kept_bytes "bytes" "that chunks had when `realloc` resized them in place";
    same_size "calls" "of `realloc` with the size that the chunk had";
    temporary "chunks" "freed before their thread allocated another";
    longest_run "chunks" "in a row, each larger than the one before";
    unseen "0 or 1" "whether code that is not instrumented uses the chunks";
    threads "bits" "by number, the threads that allocated here; bit 63 for all from 63 on";
    reads "accesses" "loads of its chunks" accesses;
    writes "accesses" "stores" accesses;
    touched_bytes "bytes" "that were touched" accesses;
    useful_bytes "bytes" "that were touched, of chunks that were both written and read" accesses;
    untouched_chunks "chunks" "never touched" accesses;
    unread_chunks "chunks" "written and never read" accesses;
    unwritten_chunks "chunks" "read and never written" accesses;
    shared_chunks "chunks" "touched by more than one thread" accesses;
    lifetime "events" "from allocation to free, the sum over chunks";
    shortest_life "events" "the least of a chunk";
    longest_life "events" "the most of a chunk";
};

/// The number with a name.
#[must_use]
pub fn number(name: &str) -> Option<&'static Number> {
    NUMBERS.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;

    /// With `BLESS` in the environment, writes the table of the document.
    #[test]
    fn the_document_has_this_table() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/inside/ccscope-format.md"
        );
        let text = std::fs::read_to_string(path).expect("the document");
        let head = "| number of a site | unit | meaning |\n|---|---|---|\n";
        let (before, after) = text.split_once(head).expect("the table");
        let (_, after) = after.split_once("\n\n").expect("what follows it");
        let row = |it: &Number| {
            let seen = if it.needs_accesses {
                "; with accesses"
            } else {
                ""
            };
            format!("| `{}` | {} | {}{seen} |\n", it.name, it.unit, it.meaning)
        };
        let rows: String = NUMBERS.iter().map(row).collect();
        let now = format!("{before}{head}{rows}\n{after}");
        if std::env::var_os("BLESS").is_some() {
            return std::fs::write(path, &now).expect("the document");
        }
        assert!(now == text, "run the test with BLESS=1");
    }

    #[test]
    fn json_has_all_of_them_by_these_names() {
        let run = profile();
        let site = serde_json::to_value(&run.sites[0]).expect("numbers");
        for it in NUMBERS {
            let value = &site[it.name];
            let value = value.as_u64().unwrap_or_else(|| u64::from(value == true));
            assert_eq!(value, (it.of)(&run.sites[0]), "{}", it.name);
        }
        assert_eq!(number("usable").map(|it| it.unit), Some("bytes"));
        assert!(number("stack").is_none());
    }
}
