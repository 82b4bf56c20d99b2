"""The kernels without Python: compiles tests/kernels/harness.c with them and runs every level of this CPU.

The harness compares with plain formulas, over texts that end at an unreadable page. `tools/cross_compile.sh` runs
it for AArch64 and s390x, too.
"""

from __future__ import annotations

import json
import os
import re
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


def ran(tmp_path: Path, compiler: str, program: str, flags: list[str], *arguments: str) -> str:
    """What a program of this folder, compiled with the kernels, writes; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [compiler, *FLAGS, *flags, f"-I{REPOSITORY / 'lsh'}", str(REPOSITORY / "tests" / "kernels" / program)]
    command += [*map(str, SOURCES), str(REPOSITORY / "lsh" / "_murmur3.c"), "-o", str(tmp_path / "program")]
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    found = subprocess.run(
        [tmp_path / "program", *arguments], capture_output=True, text=True, env=environment, timeout=600
    )
    assert found.returncode == 0, f"status {found.returncode}: {found.stderr}{found.stdout}"
    return found.stdout


def levels(said: str) -> set[str]:
    """The levels that the harness ran, of which each gave the same as the formulas."""
    names, verdict = said.removeprefix(f"{ROUNDS} rounds: ").strip().split(": ")
    assert verdict == "the same as the formulas"
    return set(names.split())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the harness protects pages by mprotect")
@pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_level_against_the_formulas(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    assert levels(ran(tmp_path, compiler, "harness.c", [], str(ROUNDS), "1")) == set(simd_levels())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the harness protects pages by mprotect")
@pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
def test_plain_c_against_the_formulas(tmp_path):
    """As a compiler without the extensions of gcc builds it."""
    assert levels(ran(tmp_path, "gcc", "harness.c", ["-DLSH_PLAIN_C"], str(ROUNDS), "1")) == {"baseline"}
    assert ran(tmp_path, "gcc", "segments.c", ["-DLSH_PLAIN_C"], "500", "1") == "500 rounds: as expected\n"


# How gcc and clang extend C. Microsoft's compiler has none of these.
EXTENSIONS = re.compile(
    r"__builtin_\w+|__attribute__|__int128|vector_size|__asm__|__atomic_\w+|__extension__|\btypeof\b"
)
WITH_EXTENSIONS = {"atomic.h", "dispatch.c", "target.h"}


def extensions(path: Path) -> list[str]:
    return EXTENSIONS.findall(path.read_text(encoding="utf-8"))


@pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
def test_extensions_of_c_are_in_three_files():
    paths = [path for ending in ("*.c", "*.h") for path in (REPOSITORY / "lsh").rglob(ending)]
    found = {path.name: names for path in paths if (names := extensions(path))}
    assert set(found) == WITH_EXTENSIONS
    assert found["dispatch.c"] == ["__asm__"]
    assert len(paths) > 20


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


@pytest.mark.parametrize(
    "rounds", [pytest.param("1000", marks=under_gcc), pytest.param("5000", marks=[*under_gcc, pytest.mark.full])]
)
def test_segments_with_right_and_wrong_content(tmp_path, rounds):
    assert checked(tmp_path, rounds, "1", sources=[HERE / "segments.c"]) == f"{rounds} rounds: as expected\n"


FUZZED = {"segments": HERE / "segments.c", "records": FUZZ / "records.c", "shingles": FUZZ / "shingles.c"}


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=[*under_gcc, *([pytest.mark.full] if name != "records" else [])]) for name in FUZZED],
)
def test_first_inputs_of_the_fuzzed_targets(tmp_path, target):
    """`.ci/fuzz` begins with these; they also show here that the targets work."""
    inputs = json.loads((FUZZ / f"{target}.json").read_text())
    said = checked(
        tmp_path, sources=[FUZZED[target], FUZZ / "replay.c"], flags=("-DLSH_FUZZ",), given="\n".join([*inputs, ""])
    )
    assert said == f"{len(inputs)} inputs\n"
    assert len(inputs) > 30
