#!/usr/bin/env bash
# Run the fast tests on the newest CPythons, which Debian's unstable distribution has: `tools/newest_pythons.sh [CPYTHON...]`.
#
# Default: 3.14, 3.14t and 3.15. The tests run in a folder with that distribution (debootstrap and chroot, about 2 GB),
# with the packages of the extra `test` that exist for it. Needs Debian, root, and half an hour. Works in a temporary
# folder. 3.14t is the free-threaded build, which Debian has not: it is built from the source of a package, WITHOUT_GIL.
# If tests fail on one, those of the others run, too.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
temp=$(mktemp -d)
debian=$temp/debian
trap 'umount "$debian"/dev/pts "$debian"/dev "$debian"/proc 2>/dev/null || true; rm -rf --one-file-system "$temp"' EXIT
. "$root/.ci/functions"

MIRROR=http://deb.debian.org/debian
WITHOUT_GIL=${WITHOUT_GIL:-3.14.7} # a version whose source the mirror has
PACKAGES=(pyarrow pandas polars duckdb zstandard matplotlib tqdm "fsspec[http]")
pythons=("$@")
[ $# -gt 0 ] || pythons=(3.14 3.14t 3.15)
failed=()

# within COMMAND...: run a command in the other distribution
within() {
    chroot "$debian" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        LSH_DATA=/data PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"
}

# build_without_gil: build the free-threaded CPython from the source of a package, and install it
build_without_gil() {
    local name=${WITHOUT_GIL%.*}
    "$python" -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' \
        "$MIRROR/pool/main/p/python$name/python${name}_$WITHOUT_GIL.orig.tar.xz" "$debian/cpython.tar.xz"
    within apt-get install -y -qq --no-install-recommends make pkgconf xz-utils lib{ssl,ffi,bz2,lzma,sqlite3,zstd}-dev \
        zlib1g-dev
    within sh -c "mkdir /cpython && tar xf /cpython.tar.xz -C /cpython --strip-components 1 && cd /cpython &&
        ./configure -q --disable-gil && make -s -j $(nproc) && make -s altinstall"
}

section "Debian unstable"
works debootstrap --version || { apt-get update -qq; apt-get install -y -qq debootstrap >/dev/null; }
debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,git unstable "$debian" "$MIRROR" >"$temp/log"
cp -L /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs/"
mount -t proc proc "$debian/proc"
mount --bind /dev "$debian/dev"
mount -t devpts devpts "$debian/dev/pts" # for the tests that need a terminal
mkdir "$debian/data" "$debian/lsh"
[ -z "${LSH_DATA:-}" ] || cp "$LSH_DATA"/* "$debian/data/"
list_files
copy "$debian/lsh"

for name in "${pythons[@]}"; do
    section "CPython $name"
    case $name in
        *t) build_without_gil >"$temp/log" 2>&1 || { tail -n 30 "$temp/log" >&2; exit 1; } ;;
        *) within apt-get install -y -qq --no-install-recommends "python$name-venv" "python$name-dev" >/dev/null ;;
    esac
    within "python$name" -m venv "/venv-$name"
    pip=(within "/venv-$name/bin/python" -m pip install)
    "${pip[@]}" pytest pytest-xdist hypothesis
    for package in "${PACKAGES[@]}"; do
        "${pip[@]}" --only-binary :all: "$package" 2>/dev/null || echo "no $package for CPython $name"
    done
    "${pip[@]}" /lsh
    within "/venv-$name/bin/python" -c 'import sys, numpy, lsh; print(sys.version, "GIL:", sys._is_gil_enabled(), "numpy", numpy.__version__, lsh.__file__)'
    within sh -c "cd /data && /venv-$name/bin/python -m pytest -q -p no:cacheprovider \
        -c /lsh/pyproject.toml --rootdir /lsh -n $(nproc) /lsh/tests" || failed+=("$name")
done
section ""
[ ${#failed[@]} -eq 0 ] || { echo "tests failed on CPython ${failed[*]}" >&2; exit 1; }
