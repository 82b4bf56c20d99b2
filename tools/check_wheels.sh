#!/usr/bin/env bash
# Check what a release will consist of, as far as one Linux machine can: `tools/check_wheels.sh [CPYTHON...]`.
#
# Compares the wheels that cibuildwheel would build with tools/release.py. Builds the sdist, and from it a wheel; checks
# their contents and metadata, and the manylinux tag. Then builds a wheel from the sdist, and runs all tests in a clean
# environment, for each CPython that is named (such as 3.13, or 3.13t without a GIL) and installed in PATH or by pyenv; by
# default for all that the package supports. Needs Debian, git and a compiler. Works on copies in a temporary folder. The
# variable PYTHON names the interpreter of the tools (default: python3).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
. "$root/.ci/functions"

MANYLINUX=manylinux_2_28 # the image that pyproject.toml names
pythons=("$@")
[ $# -gt 0 ] || pythons=(3.10 3.11 3.12 3.13 3.14 3.15 3.13t 3.14t)
oldest_numpy=1.26 # is tested once

TELL='import sys, sysconfig
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(sys.implementation.name, "%d.%d" % sys.version_info[:2] + free)'

# interpreter NAME: print the path of a CPython such as 3.13, or 3.13t without a GIL, if it is installed
interpreter() {
    local candidate
    shopt -s nullglob
    for candidate in "$(command -v "python$1" || true)" \
        "$(pyenv root 2>/dev/null || echo "${PYENV_ROOT:-$HOME/.pyenv}")"/versions/"${1%t}".*/bin/python; do
        if [ "$("$candidate" -c "$TELL" 2>/dev/null || true)" = "cpython $1" ]; then
            echo "$candidate"
            return
        fi
    done
}

section "The wheels that cibuildwheel would build"
list_files
copy "$source"
venv "$temp/tools"
inside "$temp/tools" "$elsewhere" python -m pip install -r "$source/.ci/requirements-release.txt"
for platform in linux macos windows; do
    inside "$temp/tools" "$source" cibuildwheel --platform "$platform" --print-build-identifiers
done | LC_ALL=C sort >"$temp/built"
"$python" "$source/tools/release.py" identifiers | LC_ALL=C sort | diff - "$temp/built"
echo "$(wc -l <"$temp/built") wheels, as in tools/release.py"

section "sdist and wheel"
copy "$temp/dist-source"
inside "$temp/tools" "$temp/dist-source" python -m build --outdir "$temp/dist" >"$temp/build.log" 2>&1 ||
    { cat "$temp/build.log"; exit 1; }
"$python" "$source/.ci/check_archives.py" "$temp/dist" "$temp/files"
sdist=$(echo "$temp"/dist/*.tar.gz)
wheel=$(echo "$temp"/dist/*.whl)
inside "$temp/tools" "$temp/dist" python -m twine check --strict "$sdist" "$wheel"

section "The manylinux tag"
inside "$temp/tools" "$temp" auditwheel show "$wheel"
inside "$temp/tools" "$temp" auditwheel repair --plat "${MANYLINUX}_$(uname -m)" --wheel-dir "$temp/repaired" "$wheel"
"$python" "$source/tools/release.py" identify "$temp"/repaired/*.whl
ls -l "$wheel" "$temp"/repaired/*.whl

for name in "${pythons[@]}"; do
    found=$(interpreter "$name")
    if [ -z "$found" ]; then
        printf '\nskipped: CPython %s is not installed\n' "$name"
        continue
    fi
    section "The tests with CPython $name"
    venv "$temp/venv-$name" "$found"
    mkdir "$temp/wheel-$name"
    inside "$temp/venv-$name" "$elsewhere" python -m pip wheel --no-deps --wheel-dir "$temp/wheel-$name" "$sdist"
    wheel=$(echo "$temp/wheel-$name"/*.whl)
    if [ "$name" != "${name%t}" ]; then # packages of the extra have no wheels for it
        inside "$temp/venv-$name" "$elsewhere" python -m pip install "$wheel" pytest pytest-xdist hypothesis
        PYTHON_GIL=0 test_installed "$temp/venv-$name" -m "" "$source/tests"
        continue
    fi
    inside "$temp/venv-$name" "$elsewhere" python -m pip install "${wheel}[test]"
    test_installed "$temp/venv-$name" -m "" "$source/tests"
    if [ -n "$oldest_numpy" ] && [ "${name#3.}" -le 11 ]; then
        section "The tests with CPython $name and numpy $oldest_numpy"
        inside "$temp/venv-$name" "$elsewhere" python -m pip install "numpy==$oldest_numpy.*"
        test_installed "$temp/venv-$name" -m "" "$source/tests"
        oldest_numpy=""
    fi
done

if [ -x "$source/tools/cross_compile.sh" ]; then
    section "Other systems and processors: tools/cross_compile.sh"
    "$source/tools/cross_compile.sh"
fi

section ""
printf '\n==== Wheels: done ====\n%s' "$times"
