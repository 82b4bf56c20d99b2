"""The kernels without Python: compiles tests/kernels/harness.c with them and runs every level of this CPU.

The harness compares with plain formulas, over texts that end at an unreadable page. `.ci/neon` runs the same test for
AArch64.
"""

from __future__ import annotations

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
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]
ROUNDS = 24


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the harness protects pages by mprotect")
@pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_level_against_the_formulas(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [compiler, *FLAGS, f"-I{REPOSITORY / 'lsh'}", str(REPOSITORY / "tests" / "kernels" / "harness.c")]
    command += [*map(str, SOURCES), str(REPOSITORY / "lsh" / "_murmur3.c"), "-o", str(tmp_path / "harness")]
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [tmp_path / "harness", str(ROUNDS), "1"], capture_output=True, text=True, env=environment, timeout=600
    )
    assert ran.returncode == 0, f"status {ran.returncode}: {ran.stderr}{ran.stdout}"
    levels, verdict = ran.stdout.removeprefix(f"{ROUNDS} rounds: ").strip().split(": ")
    assert set(levels.split()) == set(simd_levels())
    assert verdict == "the same as the formulas"


CHECKED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LEAKS = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


def checked(tmp_path: Path, *arguments: str, sources: list[Path], flags: tuple[str, ...] = (), given: str = "") -> str:
    """Build C files with the kernels under ASan, LSan and UBSan, run them, and return what they print."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | LEAKS
    command = ["gcc", *FLAGS, *CHECKED, *flags, f"-I{REPOSITORY / 'lsh'}", *map(str, [*sources, *SOURCES])]
    command += [str(REPOSITORY / "lsh" / "_murmur3.c"), "-o", str(tmp_path / "program")]
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [tmp_path / "program", *arguments], input=given, capture_output=True, text=True, env=environment, timeout=600
    )
    assert ran.returncode == 0, f"status {ran.returncode}: {ran.stderr}"
    return ran.stdout


under_gcc = [
    pytest.mark.slow,
    pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine"),
]


@pytest.mark.parametrize("rounds", [pytest.param("3", marks=under_gcc)])
def test_every_level_under_sanitizers(tmp_path, rounds):
    said = checked(tmp_path, rounds, "1", sources=[HERE / "harness.c"])
    assert said.endswith(": the same as the formulas\n")


@pytest.mark.parametrize("rounds", [pytest.param("5000", marks=under_gcc)])
def test_segments_with_right_and_wrong_content(tmp_path, rounds):
    assert checked(tmp_path, rounds, "1", sources=[HERE / "segments.c"]) == "5000 rounds: as expected\n"


FUZZED = {"segments": HERE / "segments.c", "records": FUZZ / "records.c", "shingles": FUZZ / "shingles.c"}


@pytest.mark.parametrize("target", [pytest.param(target, marks=under_gcc) for target in FUZZED])
def test_first_inputs_of_the_fuzzed_targets(tmp_path, target):
    """`.ci/fuzz` begins with these; they also show here that the targets work."""
    inputs = json.loads((FUZZ / f"{target}.json").read_text())
    said = checked(
        tmp_path, sources=[FUZZED[target], FUZZ / "replay.c"], flags=("-DLSH_FUZZ",), given="\n".join([*inputs, ""])
    )
    assert said == f"{len(inputs)} inputs\n"
    assert len(inputs) > 30
