# What the steps share. Each step is a script of its own that begins by sourcing this file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_TERM_COLOR=never
# Each crate is built once here: what a second build would save costs time in the first.
[[ -n ${CHECK_ONLY:-} ]] || export CARGO_INCREMENTAL=0
# Instrumented runs are ten to fifty times slower, so they try properties less often.
readonly FEW_CASES=5
# The crates whose tests run whole under the sanitizers and valgrind. Of ccscope's runtime what can
# is in the steps of the sanitizers and Miri; under valgrind its tests do not end.
readonly UNSAFE_CRATES=(ccmalloc ccmorph cctree)
# The crates that are published, each after what it depends on.
readonly PUBLISHED=(ccmodel ccscope-inside ccscope cctrace ccmalloc ccmorph-derive ccmorph cctree)
# A target without std.
readonly BARE_TARGET=x86_64-unknown-none
readonly SANITIZER_TARGET=x86_64-unknown-linux-gnu

# A scratch folder that goes with the step.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step() { printf '\n==> %s\n' "$*"; }

die() {
    printf 'ci: %s\n' "$*" >&2
    exit 1
}

# Prints cargo's target folder.
target_folder() {
    cargo metadata --format-version 1 --no-deps |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])'
}

# Builds libccmalloc.so, installs it under $prefix, and lets pkg-config find it there.
c_library() {
    cargo build --release --locked -p ccmalloc-capi
    prefix=$scratch/prefix
    LIBRARY="$(target_folder)/release/libccmalloc.so" ccmalloc/capi/install.sh "$prefix"
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
}

# Whether the sanitizers run on this machine; says so if not.
has_sanitizers() {
    [[ $(rustc -vV | sed -n 's/^host: //p') == "$SANITIZER_TARGET" ]] ||
        { echo "set up for $SANITIZER_TARGET only: left out" && false; }
}
