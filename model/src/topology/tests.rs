use super::*;

/// A folder that is removed when the test ends.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let root =
            std::env::temp_dir().join(format!("ccmodel-topology-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Tree(root)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn entries(&self, index: u32, entries: &[(&str, &str)]) {
        for (name, text) in entries {
            self.write(
                &format!("sys/devices/system/cpu/cpu0/cache/index{index}/{name}"),
                text,
            );
        }
    }

    /// Level, kind, size and bytes of a line.
    fn cache(&self, index: u32, [level, kind, size, line]: [&str; 4]) {
        let line = ("coherency_line_size", line);
        self.entries(
            index,
            &[("level", level), ("type", kind), ("size", size), line],
        );
    }

    fn geometry(&self, index: u32, ways: &str, sets: &str) {
        self.entries(
            index,
            &[("ways_of_associativity", ways), ("number_of_sets", sets)],
        );
    }

    fn read(&self) -> Topology {
        Topology::read(&Sources {
            root: self.0.clone(),
            ask_processor: false,
        })
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
    assert!(
        topology
            .caches
            .iter()
            .all(|cache| cache.source == Source::Default)
    );
    assert!(topology.notes[0].contains("defaults"), "{topology:?}");
    assert_eq!(topology.cpu_name.source, Source::Default);
    assert_eq!(topology.huge_pages.value, HugePages::Unknown);
    assert_eq!(topology.memory_bytes.source, Source::Default);
}

#[test]
fn a_full_tree_is_read() {
    let tree = Tree::new("full");
    tree.cache(0, ["1\n", "Data\n", "48K\n", "64\n"]);
    tree.cache(1, ["1", "Instruction", "32K", "64"]);
    tree.cache(2, ["2", "Unified", "1024K", "64"]);
    tree.cache(3, ["3", "Unified", "32M", "128"]);
    tree.geometry(0, "12\n", "64\n");
    tree.geometry(2, "16", "1024");
    tree.geometry(3, "16", "16384");
    tree.entries(3, &[("shared_cpu_list", "0-3,8\n")]);
    tree.write(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    let cpuinfo = "processor : 0\nvendor_id\t: AuthenticAMD\nmodel name\t: Fast One\n\
                   flags\t: fpu hypervisor sse\n";
    tree.write("proc/cpuinfo", cpuinfo);
    tree.write("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
    let topology = tree.read();
    let sizes: Vec<u64> = topology
        .data_caches()
        .map(|cache| cache.size_bytes)
        .collect();
    assert_eq!(sizes, [48 << 10, 1 << 20, 32 << 20]);
    assert_eq!(topology.caches[3].line_bytes, 128);
    assert_eq!(topology.caches[3].shared_by, 5);
    assert_eq!(
        topology.cpu_name,
        Fact::new("Fast One".to_owned(), Source::Sysfs)
    );
    assert!(topology.virtualised.value);
    assert_eq!(topology.huge_pages.value, HugePages::Madvise);
    assert_eq!(topology.memory_bytes.value, 2 << 20);
    assert_eq!(topology.notes.len(), 1);
}

#[test]
fn garbage_entries_are_left_out() {
    let tree = Tree::new("garbage");
    tree.cache(0, ["1", "Data", "48K", "64"]);
    tree.cache(1, ["two", "Unified", "1024K", "64"]);
    tree.cache(2, ["2", "Unified", "99999999999999999999K", "64"]);
    tree.cache(3, ["3", "Unified", "0K", "64"]);
    tree.cache(4, ["3", "Unified", "32M", "48"]);
    tree.cache(5, ["3", "Magic", "32M", "64"]);
    tree.cache(6, ["3", "Unified", "€", "64"]);
    tree.write("sys/devices/system/cpu/cpu0/cache/index7/level", "2");
    let topology = tree.read();
    assert_eq!(topology.caches.len(), 1);
    assert_eq!(topology.caches[0].source, Source::Sysfs);
    // Without data caches, there are defaults.
    let tree = Tree::new("only-garbage");
    tree.cache(0, ["1", "Instruction", "32K", "64"]);
    tree.cache(1, ["1", "Data", "", ""]);
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
    let registers = [0x121, (11 << 22) | 63, 63, 0];
    let cache = cpuid::decode_cache(registers).unwrap();
    assert_eq!(
        (cache.level, cache.size_bytes, cache.ways, cache.sets),
        (1, 48 << 10, 12, 64)
    );
    assert_eq!(cache.inclusive, Some(false));
    let inclusive = cpuid::decode_cache([0x163, (15 << 22) | 63, 1023, 0b10]).unwrap();
    assert_eq!(inclusive.inclusive, Some(true));
    assert_eq!(cpuid::decode_cache([0; 4]), None);
    // Whatever this processor says makes sense.
    assert!(cpuid::caches().iter().all(CacheFacts::is_plausible));
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
    let geometry = |level: &crate::CacheLevel| level.geometry;
    let geometries = hierarchy.caches().iter().map(geometry);
    geometries.map(|g| (g.sets(), g.associativity())).collect()
}

#[test]
fn sets_and_ways_become_a_hierarchy() {
    let tree = Tree::new("sets");
    tree.cache(0, ["1", "Data", "48K", "64"]);
    tree.geometry(0, "12", "64");
    tree.cache(2, ["2", "Unified", "2048K", "64"]);
    tree.geometry(2, "16", "2048");
    tree.cache(3, ["3", "Unified", "266240K", "64"]);
    tree.geometry(3, "20", "212992");
    tree.write("proc/cpuinfo", "vendor_id\t: AuthenticAMD\n");
    let topology = tree.read();
    assert_eq!(geometries(&topology), [(64, 12), (2048, 16), (1 << 16, 65)]);
    let hierarchy = topology.hierarchy().unwrap();
    assert_eq!(hierarchy.inclusion(), Inclusion::VictimLast);
    assert_eq!(topology.inclusion.source, Source::Sysfs);
    assert_eq!(topology.notes.len(), 1, "{:?}", topology.notes);
    assert!(topology.notes[0].contains("212992 sets of 20 ways"));
    tree.write("proc/cpuinfo", "vendor_id\t: GenuineIntel\n");
    let topology = tree.read();
    assert_eq!(topology.inclusion.value, Inclusion::NonInclusive);
    assert!(topology.notes[1].contains("inclusive"), "{topology:?}");
}

#[test]
fn contradictory_geometry_counts_as_unknown() {
    let tree = Tree::new("contradiction");
    tree.cache(0, ["1", "Data", "48K", "64"]);
    tree.geometry(0, "12", "65");
    tree.cache(1, ["2", "Unified", "1M", "64"]);
    let topology = tree.read();
    let first = &topology.caches[0];
    assert_eq!((first.sets, first.ways, first.size_bytes), (0, 0, 48 << 10));
    assert!(topology.notes[0].contains("65 sets of 12"), "{topology:?}");
    // At least eight ways where they are not known.
    assert_eq!(geometries(&topology), [(64, 12), (2048, 8)]);
    assert!(topology.notes[2].contains("does not say"), "{topology:?}");
}
