"""Count the instructions per shingle of each kernel, a measure of speed that does not depend on the machine's load.

`counts.py` counts them under callgrind and writes results/counts.json. `counts.py --compare` counts them again and
exits with 1 if a count is more than 2 % (`--tolerance PERCENT`) above the stored one. Callgrind does not support
AVX-512, so the levels are avx2 and baseline. Counts depend on the compiler; `--compare` reports if it is another one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

LEVELS = ("avx2", "baseline")
FLAGS = ("-std=c11", "-O2", "-ftree-vectorize", "-g0")  # as in setup.py
MEAN_WORD = 6.0  # bytes of a word of the text and the following space
KERNELS = [
    *(("32", "byte", n, 128, size) for n in (5, 8, 12) for size in (100, 1000, 2000)),
    *(("64", "byte", n, 128, size) for n in (5, 8) for size in (100, 2000)),
    *(
        ("fss", "byte", n, k, size)
        for n in (5, 8)
        for k in (128, 256)
        for size in (30, 100, 300, 1000, 20_000, 200_000)
    ),
    *(("fss", "word", n, 128, 1000) for n in (1, 5)),
    ("32", "byte", 20, 128, 1000),
]


def compile_program(folder: Path) -> Path:
    program = folder / "counts"
    house = harness.REPOSITORY / "lsh"
    sources = [Path(__file__).with_name("counts.c"), house / "_murmur3.c", *sorted(house.glob("kernels/*.c"))]
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    strict = ("-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, *FLAGS, *strict, f"-I{house}", *map(str, sources), "-o", str(program)], check=True)
    return program


def instructions(program: Path, arguments: list[str], times: int) -> int:
    """Return the instructions of one run of the program, counted by callgrind."""
    if shutil.which("valgrind") is None:
        raise SystemExit("counts.py needs valgrind; install it, on Debian with: apt install valgrind")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), *arguments, str(times)]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=True)
    found = re.search(r"Collected : (\d+)", ran.stderr)
    if found is None:
        raise SystemExit(f"callgrind reported no instruction count:\n{ran.stderr}")
    return int(found[1])


def count(folder: Path) -> dict[str, float]:
    """Count instructions per shingle, by level and kernel: the difference of two runs, so that startup cancels out."""
    program = compile_program(folder)
    found = {}
    for level in LEVELS:
        for kernel in KERNELS:
            arguments = [level, *map(str, kernel)]
            _, unit, n, _, size = kernel
            shingles = size - n + 1 if unit == "byte" else size / MEAN_WORD - n + 1
            few, many = 2, 2 + max(1, min(40, 60_000 // size))
            more = instructions(program, arguments, many) - instructions(program, arguments, few)
            found[" ".join(arguments)] = round(more / (many - few) / shingles, 3)
            print(f"{' '.join(arguments):40} {found[' '.join(arguments)]:10.2f}", flush=True)
    return found


def compare(kept: dict[str, float], now: dict[str, float], tolerance: float) -> list[str]:
    """Describe each count that has risen by more than `tolerance` percent, or that is not stored yet."""
    said = []
    for name, value in now.items():
        if name not in kept:
            said.append(f"{name}: {value:.2f}, not stored yet")
        elif value > kept[name] * (1 + tolerance / 100):
            said.append(f"{name}: {kept[name]:.2f} -> {value:.2f} ({100 * (value / kept[name] - 1):+.1f} %)")
    return said


def main() -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--compare", action="store_true", help="compare with results/counts.json; write nothing")
    parser.add_argument("--tolerance", type=float, default=2.0, help="percent a count may rise (default: 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        now = count(Path(folder))
    path = options.folder / "counts.json"
    machine = harness.machine()
    if not options.compare:
        about = "instructions a shingle under callgrind; level, scheme, unit, n, k, size of the text in bytes"
        content = {"about": about, "compiler": machine["compiler"], "flags": list(FLAGS), "instructions": now}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}")
        return 0
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["compiler"] != machine["compiler"]:
        print(f"compiled with {machine['compiler']}; the stored counts are of {kept['compiler']}")
    said = compare(kept["instructions"], now, options.tolerance)
    print("\n".join(said) or f"no count rose by more than {options.tolerance:g} %")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
