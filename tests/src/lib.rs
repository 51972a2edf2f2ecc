//! Tests that cross crates stand in `all/`; here the examples of the documents become doctests.

macro_rules! documents {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            mod $name {}
        )*
    };
}

documents! {
    readme: "../../README.md",
    guide: "../../docs/guide.md",
    ccmalloc_guide: "../../docs/ccmalloc.md",
    ccmalloc_readme: "../../ccmalloc/README.md",
    ccmorph_guide: "../../docs/ccmorph.md",
    ccmorph_readme: "../../ccmorph/README.md",
    ccmorph_derive_readme: "../../ccmorph/derive/README.md",
    model_guide: "../../docs/model.md",
    model_readme: "../../model/README.md",
    scope_readme: "../../scope/README.md",
    ctree_guide: "../../docs/ctree.md",
    ctree_files_guide: "../../docs/ctree-files.md",
    ctree_frozen_guide: "../../docs/ctree-frozen.md",
    ctree_readme: "../../ctree/README.md",
}
