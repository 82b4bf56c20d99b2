"""The kernels without Python: compiles tests/kernels/harness.c with them and runs every level of this CPU.

The harness compares with plain formulas, over texts that end at an unreadable page. `tools/cross_compile.sh` runs
it for AArch64 and s390x, too.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsh._minhash import simd_levels

REPOSITORY = Path(__file__).resolve().parents[2]
HERE, FUZZ = REPOSITORY / "tests" / "kernels", REPOSITORY / "tests" / "fuzz"
SOURCES = sorted((REPOSITORY / "lsh" / "kernels").glob("*.c"))
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
CHECKED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LEAKS = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
ROUNDS = 24

from_sources = pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
protects_pages = pytest.mark.skipif(sys.platform == "win32", reason="the harness protects pages by mprotect")
full = pytest.mark.full
under_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")


def ran(tmp_path: Path, compiler: str, programs: list[Path], flags: list[str], *arguments: object, given="") -> str:
    """What a program writes that is compiled with the kernels; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | LEAKS
    command = [compiler, *FLAGS, *flags, f"-I{REPOSITORY / 'lsh'}", *map(str, [*programs, *SOURCES])]
    command += [str(REPOSITORY / "lsh" / "_murmur3.c"), "-o", str(tmp_path / "program")]
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    program = [tmp_path / "program", *map(str, arguments)]
    found = subprocess.run(program, input=given, capture_output=True, text=True, env=environment, timeout=600)
    assert found.returncode == 0, f"status {found.returncode}: {found.stderr}{found.stdout}"
    return found.stdout


def levels(said: str) -> set[str]:
    """The levels that the harness ran, of which each gave the same as the formulas."""
    names, verdict = said.removeprefix(f"{ROUNDS} rounds: ").strip().split(": ")
    assert verdict == "the same as the formulas"
    return set(names.split())


@pytest.mark.slow
@protects_pages
@from_sources
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_level_against_the_formulas(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    said = ran(tmp_path, compiler, [HERE / "harness.c"], ["-O2"], ROUNDS, 1)
    assert levels(said) == set(simd_levels())


@pytest.mark.slow
@protects_pages
@from_sources
@under_gcc
def test_plain_c_against_the_formulas(tmp_path):
    """As a compiler without the extensions of gcc builds it."""
    plain = ["-O2", "-DLSH_PLAIN_C"]
    assert levels(ran(tmp_path, "gcc", [HERE / "harness.c"], plain, ROUNDS, 1)) == {"baseline"}
    assert ran(tmp_path, "gcc", [HERE / "segments.c"], plain, 500, 1) == "500 rounds: as expected\n"


@pytest.mark.slow
@from_sources
@under_gcc
def test_every_level_under_sanitizers(tmp_path):
    assert ran(tmp_path, "gcc", [HERE / "harness.c"], CHECKED, 3, 1).endswith(": the same as the formulas\n")


@pytest.mark.slow
@from_sources
@under_gcc
@pytest.mark.parametrize("rounds", [1000, pytest.param(5000, marks=full)])
def test_segments_with_right_and_wrong_content(tmp_path, rounds):
    assert ran(tmp_path, "gcc", [HERE / "segments.c"], CHECKED, rounds, 1) == f"{rounds} rounds: as expected\n"


FUZZED = {"segments": HERE / "segments.c", "records": FUZZ / "records.c", "shingles": FUZZ / "shingles.c"}


@pytest.mark.slow
@from_sources
@under_gcc
@pytest.mark.parametrize("target", [pytest.param(name, marks=() if name == "records" else full) for name in FUZZED])
def test_first_inputs_of_the_fuzzed_targets(tmp_path, target):
    """`.ci/fuzz` begins with these; they also show here that the targets work."""
    inputs = json.loads((FUZZ / f"{target}.json").read_text())
    programs, flags = [FUZZED[target], FUZZ / "replay.c"], [*CHECKED, "-DLSH_FUZZ"]
    assert ran(tmp_path, "gcc", programs, flags, given="\n".join([*inputs, ""])) == f"{len(inputs)} inputs\n"
    assert len(inputs) > 30
