//! Tests that cross crates stand in `all/`; here the examples of the documents become doctests.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/ccmalloc.md")]
mod ccmalloc_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../ccmalloc/README.md")]
mod ccmalloc_readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/ccmorph.md")]
mod ccmorph_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../ccmorph/README.md")]
mod ccmorph_readme {}

#[cfg(doctest)]
#[doc = include_str!("../../ccmorph/derive/README.md")]
mod ccmorph_derive_readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/ctree-files.md")]
mod ctree_files_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/model.md")]
mod model_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../model/README.md")]
mod model_readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/ctree.md")]
mod ctree_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/ctree-frozen.md")]
mod ctree_frozen_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../ctree/README.md")]
mod ctree_readme {}

#[cfg(doctest)]
#[doc = include_str!("../../docs/guide.md")]
mod guide {}
