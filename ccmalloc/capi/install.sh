#!/bin/sh
# Installs libccmalloc.so, ccmalloc.h, ccmalloc.hpp and libccmalloc.pc under PREFIX (default /usr/local):
#
#   cargo build --release -p ccmalloc-capi && ccmalloc/capi/install.sh PREFIX
#
# DESTDIR is put in front of every path, for packagers; LIBRARY names the library if it lies elsewhere than target/release/libccmalloc.so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-/usr/local}
library=${LIBRARY:-${CARGO_TARGET_DIR:-$here/../../target}/release/libccmalloc.so}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)

if [ ! -f "$library" ]; then
    echo "install.sh: $library is missing; build it first: cargo build --release -p ccmalloc-capi" >&2
    exit 1
fi
case $prefix in
/*) ;;
*) echo "install.sh: PREFIX must be an absolute path" >&2 && exit 2 ;;
esac

root=${DESTDIR:-}$prefix
install -d "$root/lib/pkgconfig" "$root/include"
# The name with the number is what linked programs ask for at run time, the one without is for the linker and for LD_PRELOAD.
install -m 755 "$library" "$root/lib/libccmalloc.so.0"
ln -sf libccmalloc.so.0 "$root/lib/libccmalloc.so"
install -m 644 "$here/include/ccmalloc.h" "$here/include/ccmalloc.hpp" "$root/include/"
# In the .pc file a backslash stands before what would end or change a word (a space, say), and sed's replacement needs another before that, "&" and "|".
quoted=$(printf '%s' "$prefix" | sed -e 's/[^A-Za-z0-9_./+,:@%=~-]/\\&/g' -e 's/[\\&|]/\\&/g')
sed -e "s|@PREFIX@|$quoted|" -e "s|@VERSION@|$version|" "$here/libccmalloc.pc.in" >"$root/lib/pkgconfig/libccmalloc.pc"
# The dynamic linker finds new libraries in the system's folders only after it has been told.
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then
    ldconfig
fi
echo "installed libccmalloc $version under $root"
