#!/usr/bin/env bash
# Run the fast tests on the newest CPythons, which Debian's unstable distribution has: `tools/newest_pythons.sh [CPYTHON...]`.
#
# Default: 3.14, 3.14t (without a GIL, compiled from Debian's source package) and 3.15. The tests run in a folder with
# that distribution (debootstrap and chroot, about 1 GB), with the packages of the extra `test` that exist for it. Needs
# Debian, root, and a quarter of an hour; the compilation of 3.14t takes as long again. Works in a temporary folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
temp=$(mktemp -d)
debian=$temp/debian
trap 'umount "$debian"/dev "$debian"/proc 2>/dev/null || true; rm -rf --one-file-system "$temp"' EXIT
. "$root/.ci/functions"

MIRROR=http://deb.debian.org/debian
PACKAGES=(pyarrow pandas polars duckdb zstandard matplotlib tqdm "fsspec[http]" mmh3)
pythons=("$@")
[ $# -gt 0 ] || pythons=(3.14 3.14t 3.15)

# within COMMAND...: run a command in the other distribution
within() {
    chroot "$debian" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        LSH_DATA=/data PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"
}

section "Debian unstable"
works debootstrap --version || { apt-get update -qq; apt-get install -y -qq debootstrap >/dev/null; }
debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,git unstable "$debian" "$MIRROR" >"$temp/log"
cp -L /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs/"
mount -t proc proc "$debian/proc"
mount --bind /dev "$debian/dev"
mkdir "$debian/data" "$debian/lsh"
[ -z "${LSH_DATA:-}" ] || cp "$LSH_DATA"/* "$debian/data/"
list_files
copy "$debian/lsh"

for name in "${pythons[@]}"; do
    section "CPython $name"
    version=${name%t}
    if [ "$name" = "$version" ]; then
        within apt-get install -y -qq --no-install-recommends "python$version-venv" "python$version-dev" >/dev/null
    else
        echo "deb-src $MIRROR unstable main" >"$debian/etc/apt/sources.list.d/sources.list"
        within apt-get -o Acquire::Check-Valid-Until=false update -qq
        within apt-get install -y -qq --no-install-recommends dpkg-dev make zlib1g-dev libffi-dev libssl-dev libbz2-dev \
            liblzma-dev libsqlite3-dev xz-utils >/dev/null
        within sh -c "mkdir -p /source && cd /source && apt-get source -qq python$version >/dev/null 2>&1 &&
            cd python$version-*/ && ./configure --disable-gil >/dev/null && make -j2 >/dev/null 2>&1 && make altinstall >/dev/null"
    fi
    within "python$name" -m venv "/venv-$name"
    pip=(within "/venv-$name/bin/python" -m pip install)
    "${pip[@]}" pytest pytest-xdist hypothesis
    for package in "${PACKAGES[@]}"; do
        "${pip[@]}" --only-binary :all: "$package" 2>/dev/null || echo "no $package for CPython $name"
    done
    "${pip[@]}" /lsh
    within "/venv-$name/bin/python" -c 'import sys, numpy, lsh; print(sys.version, "numpy", numpy.__version__, lsh.__file__)'
    within sh -c "cd /data && PYTHON_GIL=${PYTHON_GIL:-} /venv-$name/bin/python -m pytest -q -p no:cacheprovider \
        -c /lsh/pyproject.toml --rootdir /lsh -n $(nproc) /lsh/tests"
done
section ""
