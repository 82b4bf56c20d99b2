"""The kernels without Python: compiles tests/kernels/harness.c with them and runs every level of this CPU.

The harness compares with plain formulas, over texts that end at an unreadable page. `.ci/neon` runs the same test for
AArch64.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsh._minhash import simd_levels

REPOSITORY = Path(__file__).resolve().parents[2]
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


@pytest.mark.slow
@pytest.mark.skipif(not SOURCES, reason="the sources are not beside the tests")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
def test_segments_with_right_and_wrong_content(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["gcc", *FLAGS, *CHECKED, f"-I{REPOSITORY / 'lsh'}", str(REPOSITORY / "tests" / "kernels" / "segments.c")]
    command += [*map(str, SOURCES), str(REPOSITORY / "lsh" / "_murmur3.c"), "-o", str(tmp_path / "segments")]
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [tmp_path / "segments", "5000", "1"], capture_output=True, text=True, env=environment, timeout=600
    )
    assert ran.returncode == 0, f"status {ran.returncode}: {ran.stderr}"
    assert ran.stdout == "5000 rounds: as expected\n"
