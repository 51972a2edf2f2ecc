use super::*;
use std::path::PathBuf;

/// A folder in the place of `/`, which is removed when the test ends.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let folder = format!("ccmodel-topology-{}-{name}", std::process::id());
        Tree(std::env::temp_dir().join(folder))
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.0.join("sys").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Level, kind, size, bytes of a line, then ways and sets.
    fn cache(&self, index: u32, texts: &[&str]) {
        let names = "level type size coherency_line_size ways_of_associativity number_of_sets \
                     shared_cpu_list";
        for (name, text) in names.split(' ').zip(texts) {
            let path = format!("devices/system/cpu/cpu0/cache/index{index}/{name}");
            self.write(&path, text);
        }
    }

    fn read(&self) -> Topology {
        Topology::read(&self.0, Processor::default())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A folder that cannot be removed is the system's to clean up.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn nothing_there_gives_defaults_and_says_so() {
    let topology = Tree::new("nothing").read();
    assert_eq!(topology.data_caches().count(), 3);
    let mut sources = topology.caches.iter().map(|cache| cache.source);
    assert!(sources.all(|source| source == Source::Default));
    assert!(topology.notes[0].contains("defaults"), "{topology:?}");
    assert_eq!(topology.cpu_name.source, Source::Default);
    assert_eq!(topology.huge_pages.value, "unknown");
}

#[test]
fn a_full_tree_is_read() {
    let tree = Tree::new("full");
    tree.cache(0, &["1\n", "Data\n", "48K\n", "64\n", "12\n", "64\n"]);
    tree.cache(1, &["1", "Instruction", "32K", "64"]);
    tree.cache(2, &["2", "Unified", "1024K", "64", "16", "1024"]);
    tree.cache(3, &["3", "Unified", "32M", "128", "16", "16384", "0-3,8\n"]);
    tree.write(
        "kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    let processor = Processor {
        name: Some("Fast One".to_owned()),
        hypervisor: Some(true),
        vendor: Some("AuthenticAMD".to_owned()),
        ..Processor::default()
    };
    let topology = Topology::read(&tree.0, processor);
    let sizes = topology.data_caches().map(|cache| cache.size_bytes);
    assert!(sizes.eq([48 << 10, 1 << 20, 32 << 20]));
    let last = &topology.caches[3];
    assert_eq!((last.line_bytes, last.shared_by), (128, 5));
    assert_eq!(topology.cpu_name.value, "Fast One");
    assert!(topology.virtualised.value);
    assert_eq!(
        topology.huge_pages,
        Fact::new("madvise".to_owned(), Source::Sysfs)
    );
    assert_eq!(topology.inclusion.value, Inclusion::VictimLast);
    assert_eq!(topology.notes.len(), 1);
    tree.write(
        "../proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Slow One\n",
    );
    let name = Fact::new("Slow One".to_owned(), Source::Sysfs);
    assert_eq!(tree.read().cpu_name, name);
}

#[test]
fn garbage_entries_are_left_out() {
    let tree = Tree::new("garbage");
    tree.cache(0, &["1", "Data", "48K", "64"]);
    tree.cache(1, &["two", "Unified", "1024K", "64"]);
    tree.cache(2, &["2", "Unified", "99999999999999999999K", "64"]);
    tree.cache(3, &["3", "Unified", "0K", "64"]);
    tree.cache(4, &["3", "Unified", "32M", "48"]);
    tree.cache(5, &["3", "Magic", "32M", "64"]);
    tree.cache(6, &["3", "Unified", "€", "64"]);
    tree.cache(7, &["2"]);
    let topology = tree.read();
    assert_eq!(topology.caches.len(), 1);
    assert_eq!(topology.caches[0].source, Source::Sysfs);
    // Without data caches, there are defaults.
    let tree = Tree::new("only-garbage");
    tree.cache(0, &["1", "Instruction", "32K", "64"]);
    tree.cache(1, &["1", "Data", "", ""]);
    let topology = tree.read();
    assert_eq!(topology.data_caches().count(), 3);
    assert!(topology.notes[0].contains("no cache entries"));
}

#[test]
fn processor_lists_are_counted() {
    assert_eq!(count_cpus("0"), Some(1));
    assert_eq!(count_cpus("0-3,8,10-11"), Some(7));
    for bad in ["", "a", "3-1", "0-", "0-4294967295"] {
        assert_eq!(count_cpus(bad), None, "{bad:?}");
    }
}

#[test]
fn cpuid_leaves_are_decoded() {
    // 48 KB, 12 ways, 64 sets, 64-byte lines, level 1 data; then the end of the list.
    let cache = cpuid::decode_cache([0x121, (11 << 22) | 63, 63, 0]).unwrap();
    let size = (cache.level, cache.size_bytes, cache.ways, cache.sets);
    assert_eq!(size, (1, 48 << 10, 12, 64));
    assert_eq!(cache.inclusive, Some(false));
    let inclusive = cpuid::decode_cache([0x163, (15 << 22) | 63, 1023, 0b10]).unwrap();
    assert_eq!(inclusive.inclusive, Some(true));
    assert_eq!(cpuid::decode_cache([0; 4]), None);
    let processor = Processor::this();
    assert!(processor.caches.iter().all(CacheFacts::is_plausible));
    for text in [processor.name, processor.vendor].into_iter().flatten() {
        assert!(!text.is_empty() && !text.contains(char::is_control));
    }
}

#[test]
fn this_machine_has_a_first_level() {
    let topology = Topology::this();
    assert_eq!(topology.data_caches().next().unwrap().level, 1);
    assert!(topology.page_bytes.value.is_power_of_two());
    assert!(topology.memory_bytes.value > 1 << 20);
}

/// Sets and ways of each cache of a hierarchy.
fn geometries(topology: &Topology) -> Vec<(u64, u64)> {
    let hierarchy = topology.hierarchy().unwrap();
    let geometries = hierarchy.caches().iter().map(|level| level.geometry);
    geometries.map(|g| (g.sets(), g.associativity())).collect()
}

#[test]
fn sets_and_ways_become_a_hierarchy() {
    let tree = Tree::new("sets");
    tree.cache(0, &["1", "Data", "48K", "64", "12", "64"]);
    tree.cache(2, &["2", "Unified", "2048K", "64", "16", "2048"]);
    tree.cache(3, &["3", "Unified", "266240K", "64", "20", "212992"]);
    let topology = tree.read();
    assert_eq!(geometries(&topology), [(64, 12), (2048, 16), (1 << 16, 65)]);
    assert!(topology.notes[0].contains("212992 sets of 20 ways"));
    assert_eq!(topology.inclusion.value, Inclusion::NonInclusive);
    assert!(topology.notes[1].contains("inclusive"), "{topology:?}");
}

#[test]
fn contradictory_geometry_counts_as_unknown() {
    let tree = Tree::new("contradiction");
    tree.cache(0, &["1", "Data", "48K", "64", "12", "65"]);
    tree.cache(1, &["2", "Unified", "1M", "64"]);
    let topology = tree.read();
    let first = &topology.caches[0];
    assert_eq!((first.sets, first.ways, first.size_bytes), (0, 0, 48 << 10));
    assert!(topology.notes[0].contains("65 sets of 12"), "{topology:?}");
    // At least eight ways where they are not known.
    assert_eq!(geometries(&topology), [(64, 12), (2048, 8)]);
    assert!(topology.notes[2].contains("does not say"), "{topology:?}");
}
