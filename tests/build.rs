//! Writes the module that calls every stable method of the standard library's ordered collections
//! on those of `ctree`: see `all/std_surface`.

use std::path::Path;

#[path = "all/std_surface/generate.rs"]
mod generate;
#[expect(dead_code, reason = "the test uses the rest")]
#[path = "all/std_surface/item.rs"]
mod item;

const LIST: &str = "all/std_surface/std.txt";

fn main() {
    println!("cargo::rerun-if-changed=all/std_surface");
    let list = std::fs::read_to_string(LIST).expect("the list of the standard library's methods");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names the folder");
    let signatures = generate::file(&item::parse(&list));
    std::fs::write(Path::new(&folder).join("std_signatures.rs"), signatures)
        .expect("the folder can be written to");
}
