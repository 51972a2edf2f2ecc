//! Link options of `libccmalloc.so`, and whether it can apply rules.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(has_rules)");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    // `entry` is written in assembly, and uses the C library's kind of thread-local storage.
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    if variable("CARGO_CFG_TARGET_ENV") == "gnu" && ["x86_64", "aarch64"].contains(&&*arch) {
        println!("cargo::rustc-cfg=has_rules");
    }
    for option in [
        // What programs that are linked with the library ask for at run time; `install.sh` makes
        // the names.
        "-Wl,-soname,libccmalloc.so.0",
        // Objects outlive a `dlclose`, and so does the destructor of the thread's key.
        "-Wl,-z,nodelete",
        // Every symbol is looked up at load time: a lazy look-up would run the dynamic linker in
        // the middle of `free`.
        "-Wl,-z,now",
    ] {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
}
