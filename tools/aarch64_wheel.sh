#!/usr/bin/env bash
# Build a wheel for Linux on AArch64 with Debian's cross compiler, and run the tests of the core on it under qemu:
# `tools/aarch64_wheel.sh [PYTEST ARGUMENT...]` (default: the core tests). It prints the wheel's name and the levels that ran.
#
# Python for AArch64 and its headers are Debian's packages, unpacked into a temporary folder; the system is not changed.
# The wheel is built with the interpreter that the variable PYTHON names (default: python3), which must have the same
# version as Debian's python3. numpy, pytest and hypothesis come from PyPI. Needs a Debian system; installs the compiler
# and qemu-user with apt-get if they are missing. The tests take 20 minutes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME

missing=()
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
[ -e /usr/aarch64-linux-gnu/lib/libc.so ] || missing+=(libc6-dev-arm64-cross)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# Debian's Python for AArch64, with all that it depends on: apt-get with a state of its own, in which nothing is installed
debian=$temp/debian
mkdir -p "$temp/state/lists/partial" "$temp/cache/archives/partial" "$debian"
: >"$temp/state/status"
cat >"$temp/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$temp/state";
Dir::State::status "$temp/state/status";
Dir::Cache "$temp/cache";
END
arm64() { APT_CONFIG=$temp/apt.conf apt-get -qq "$@" >/dev/null; }
arm64 update
arm64 install -y --download-only --no-install-recommends python3 libpython3-dev libstdc++6
for package in "$temp"/cache/archives/*.deb; do
    dpkg -x "$package" "$debian"
done
version=$(basename "$(readlink "$debian/usr/bin/python3")") # python3.11
version=${version#python}
"$python" -c "
import sys
if sys.version_info[:2] != tuple(map(int, '$version'.split('.'))):
    sys.exit('PYTHON must be Python $version, as in this Debian, to build a wheel for it; got %d.%d' % sys.version_info[:2])"

# The wheel
copy=$temp/source
mkdir "$copy"
tar -C "$root" -cf - --exclude=./build --exclude=./.git --exclude='*.so' --exclude=__pycache__ . | tar -C "$copy" -xf -
"$python" -m venv "$temp/venv"
"$temp/venv/bin/python" -m pip install -q "setuptools>=77" "cython>=3.2.1"
(
    cd "$copy"
    export _PYTHON_HOST_PLATFORM=linux-aarch64
    export SETUPTOOLS_EXT_SUFFIX=.cpython-${version/./}-aarch64-linux-gnu.so
    export CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared"
    export CFLAGS="-I$debian/usr/include/python$version -I$debian/usr/include" # before those of this Python
    "$temp/venv/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$temp/dist" .
)
wheel=$(echo "$temp"/dist/*.whl)
echo "built $(basename "$wheel"), $(stat -c %s "$wheel") bytes"

# An interpreter that runs under qemu and starts itself: sys.executable is this script
site=$temp/site
install() { # for AArch64, without those that only this machine has
    "$temp/venv/bin/python" -m pip install -q --target "$site" --python-version "$version" --only-binary=:all: \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 "$@"
}
install numpy pytest hypothesis
"$python" -m zipfile -e "$wheel" "$site"
cat >"$temp/python" <<END
#!/bin/sh
export PYTHONHOME=$debian/usr PYTHONPATH=$site\${PYTHONPATH:+:\$PYTHONPATH}
exec qemu-aarch64 -L $debian -0 "\$0" $debian/usr/bin/python$version "\$@"
END
chmod +x "$temp/python"
mkdir "$temp/empty"
cd "$temp/empty"
"$temp/python" -c '
import lsh, platform
from lsh._minhash import simd_levels
levels = simd_levels()
print(f"Python {platform.python_version()} on {platform.machine()} under qemu, levels", *levels)
assert platform.machine() == "aarch64" and levels == ("neon", "baseline") and lsh.__file__.endswith("site/lsh/__init__.py")'
rooms=("$copy"/tests/{test_levels,sketch/test_{murmur3,hasher,fss},text/test_sets,segments/test_searching,base/test_budget}.py)
tests=(-m "not full" "${rooms[@]}" "$copy/tests/engine/test_expected.py" "$copy/tests/passages")
# LSH_TEST_FULL: no limit to the time of a test; of these tests it changes nothing else
LSH_TEST_FULL=1 LSH_TEST_PROFILE=quick "$temp/python" -m pytest -q -p no:cacheprovider -c "$copy/pyproject.toml" --rootdir "$copy" \
    "${@:-${tests[@]}}"
