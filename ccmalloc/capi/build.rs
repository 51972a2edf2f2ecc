//! Link options of `libccmalloc.so`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os != "linux" {
        return;
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
