#!/usr/bin/env bash
# Compile the C of the package for other systems, and run the tests of the kernels for two other processors:
# `tools/cross_compile.sh [ROUNDS [SEED]]`.
#
# 1. The kernels and the headers of the bindings, for Windows, macOS, Linux with musl, and s390x (big endian), by zig with
#    warnings as errors; for Windows also as plain C, as other compilers get it.
# 2. The C that Cython writes, with the headers of this Python, for all of these but Windows, which has another pyconfig.h.
# 3. tests/kernels/harness.c, which compares all kernels with plain formulas, and segments.c, under qemu for s390x and
#    AArch64, built by gcc: ROUNDS rounds (default 20) from SEED (default 1) on, and the inputs of tests/fuzz/segments.json.
#
# Needs a Debian system; installs the compilers and qemu-user with apt-get if they are missing, and ziglang and Cython with
# pip into a temporary environment. The variable PYTHON names the interpreter (default: python3), which needs its headers
# (not those of Debian's python3-dev, whose pyconfig.h refuses other systems).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
rounds=${1:-20}
seed=${2:-1}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 ZIG_GLOBAL_CACHE_DIR=$temp/cache ZIG_LOCAL_CACHE_DIR=$temp/cache

missing=()
command -v qemu-s390x >/dev/null || missing+=(qemu-user)
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
[ -e /usr/aarch64-linux-gnu/lib/libc.a ] || missing+=(libc6-dev-arm64-cross)
command -v s390x-linux-gnu-gcc >/dev/null || missing+=(gcc-s390x-linux-gnu)
[ -e /usr/s390x-linux-gnu/lib/libc.a ] || missing+=(libc6-dev-s390x-cross)
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
"$python" -m venv "$temp/venv"
"$temp/venv/bin/python" -m pip install -q "ziglang>=0.13" "cython>=3.2.1"
zig=("$temp/venv/bin/python" -m ziglang cc)
echo "zig $("$temp/venv/bin/python" -m ziglang version)"

linux=(x86_64-linux-musl aarch64-linux-musl s390x-linux-gnu)
targets=(x86_64-windows-gnu x86_64-macos aarch64-macos "${linux[@]}")
strict=(-std=c11 -O1 -Wall -Wextra -Wconversion -Werror)
kernels=("$root"/lsh/kernels/*.c "$root/lsh/_murmur3.c")
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')

# compile TARGET FLAG... FILE: compile a file, to nothing
compile() {
    local target=$1
    shift
    "${zig[@]}" -target "$target" -c "$@" -o "$temp/object.o"
}

printf '%s\n' '#include "_murmur3.h"' '#include "kernels/kernels.h"' \
    '#include "kernels/passages.h"' '#include "kernels/siphash.h"' '#include "kernels/target.h"' '#include "kernels/utf8.h"' \
    'int lsh_headers(void);' 'int lsh_headers(void) { return 0; }' >"$temp/headers.c"
for target in "${targets[@]}"; do
    for file in "${kernels[@]}" "$temp/headers.c"; do
        compile "$target" "${strict[@]}" -D_GNU_SOURCE -I"$root/lsh" "$file"
        [ "$target" != x86_64-windows-gnu ] || compile "$target" "${strict[@]}" -DLSH_PLAIN_C -I"$root/lsh" "$file"
    done
    echo "$target: ${#kernels[@]} files of kernels compiled"
done

# As setup.py has Cython write them, but with one shared module
modules=$(cd "$root/lsh" && find . -name '*.pyx' | sed 's|^\./||; s|\.pyx$||' | sort)
(cd "$root" && "$temp/venv/bin/cython" --generate-shared "$temp/_lsh_cython.c")
written=("$temp/_lsh_cython.c")
for module in $modules; do
    written+=("$temp/${module//\//.}.c")
    (cd "$root" && "$temp/venv/bin/cython" -3 -X auto_pickle=False --shared lsh._lsh_cython -o "${written[-1]}" "lsh/$module.pyx")
done
for target in "${targets[@]:1}"; do
    for file in "${written[@]}"; do
        # Cython writes functions that it does not use. The headers are those of another system's Python.
        compile "$target" -std=c11 -O0 -DNDEBUG -fwrapv -Wall -Werror -Wno-unused-function -Wno-unused-variable \
            -Wno-unreachable-code -I"$headers" -I"$root/lsh" "$file"
    done
    echo "$target: ${#written[@]} files of Cython compiled, with the headers of this Python"
done

"$python" -c '
import json, pathlib, sys
print(*json.loads(pathlib.Path(sys.argv[1]).read_text()), sep="\n")' "$root/tests/fuzz/segments.json" >"$temp/inputs"

# build MACHINE PROGRAM FILE...: compile a program with the kernels, and link it statically
build() {
    local machine=$1 program=$2
    shift 2
    "$machine-linux-gnu-gcc" -static -std=c11 -O2 -Wall -Wextra -Werror -I"$root/lsh" "$@" "${kernels[@]}" \
        -o "$temp/$program-$machine"
}

# run MACHINE PROGRAM [ARGUMENT...]: run a program under qemu, and tell what it prints
run() {
    said=$("qemu-$1" "$temp/$2-$1" "${@:3}") || { echo "$1 under qemu, $2 failed: $said" >&2; exit 1; }
    echo "$1 under qemu, $2: $said"
}

for machine in s390x aarch64; do
    build $machine harness "$root/tests/kernels/harness.c"
    build $machine segments "$root/tests/kernels/segments.c"
    build $machine replay -DLSH_FUZZ "$root/tests/kernels/segments.c" "$root/tests/fuzz/replay.c"
    run $machine harness "$rounds" "$seed"
    case "$machine $said" in
        "aarch64 "*neon* | s390x*) ;;
        *) echo "the NEON kernels were not built" >&2; exit 1 ;;
    esac
    run $machine segments $((10 * rounds)) "$seed"
    run $machine replay <"$temp/inputs"
done
