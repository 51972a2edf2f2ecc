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
    ccmalloc_guide: "../../docs/use/ccmalloc.md",
    ccmalloc_readme: "../../ccmalloc/README.md",
    ccmorph_guide: "../../docs/use/ccmorph.md",
    ccmorph_inside: "../../docs/inside/ccmorph.md",
    ccmorph_readme: "../../ccmorph/README.md",
    ccmorph_derive_readme: "../../ccmorph/derive/README.md",
    model_guide: "../../docs/use/model.md",
    model_readme: "../../model/README.md",
    scope_readme: "../../scope/README.md",
    ctree_guide: "../../docs/use/ctree.md",
    ctree_readme: "../../ctree/README.md",
    advised_code: "../../docs/use/advised.md",
}
