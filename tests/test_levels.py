"""All kernel levels of this CPU give the same bits, and the bits of each version of a scheme are fixed.

The levels are compared over the corpus of corpus.py. Each level has its own process, as LSH_SIMD is read at import.
All levels could be wrong in the same way: test_hasher.py and test_fss.py compare with the slow reference code.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import corpus
import pytest
from running import environment

import lsh
from lsh import Shingles
from lsh._minhash import LEVELS, simd_levels
from lsh.sketch.hasher import SCHEME_VERSIONS

TELL = "import lsh; print(lsh.simd_level())"


def run(*arguments: str, level: str | None) -> subprocess.CompletedProcess[str]:
    """Run Python with LSH_SIMD set, or without it."""
    variables = environment()
    variables.pop("LSH_SIMD", None)
    if level is not None:
        variables["LSH_SIMD"] = level
    command = [sys.executable, *arguments]
    folder = Path(__file__).parent  # from the root, `import lsh` would find the sources
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables, timeout=600, check=False)


def test_levels_give_the_same_bits():
    script = str(Path(__file__).parent / "corpus.py")
    portions = corpus.checksums()  # this process, at the fastest level or the one in LSH_SIMD
    assert len(portions) == len(set(portions.values())) == 11
    for level in set(simd_levels()) - {lsh.simd_level()}:
        result = run(script, level=level)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout) == {"level": level, **portions}


def test_the_level_can_be_chosen():
    assert set(simd_levels()) <= set(LEVELS)
    assert simd_levels()[-1] == "baseline"
    assert lsh.simd_level() in simd_levels()
    for level in (None, "", simd_levels()[0]):  # an empty variable counts as unset
        assert run("-c", TELL, level=level).stdout.strip() == simd_levels()[0]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "level",
    ["sse9", "AVX2", " baseline", "baseline ", "avx", "avx512f", *sorted(set(LEVELS) - set(simd_levels()))],
)
def test_an_unknown_level_is_an_error_that_lists_the_levels(level):
    result = run("-c", TELL, level=level)
    assert result.returncode != 0
    assert result.stdout == ""
    message = result.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: LSH_SIMD must name a level that this CPU has (")
    assert f"({', '.join(simd_levels())})" in message
    assert f"got {level!r}" in message


# The bits of each scheme and version: if the bits change, the scheme needs a new version, with a new line here.

PINNED = {
    ("murmur3_32", 1): "bb1a692b9d7ab5efe14079ab62485535ac986058e3c751c0c9faf4e3a24fe916",
    ("murmur3_64", 1): "82d7e455bfc7ff63e0f115120f47a9d26aeb2b5be3d4ef3332fd9d8f6d70ed34",
    ("fss", 1): "618925c6c2207935f7e4e39537d8f473fa482b7df91dde2fdccb8dff13f84175",
}
TEXTS = [
    b"",
    b"a",
    b"abcdefgh",
    b"The quick brown fox jumps over the lazy dog.",
    "漢字 é, Σ — \U0001f469".encode(),
    b"\xff\x00\xfe" * 9,
    b"\xed\xa0\x80",
    b"x" * 700,
    bytes(range(256)) * 3,
]
SHINGLES = [(1, "byte"), (5, "byte"), (8, "byte"), (15, "byte"), (16, "byte"), (40, "byte"), (3, "char"), (2, "word")]
COMPONENTS = (1, 40)


def by_the_library(kind: str) -> bytes:
    total = b""
    for n, unit in SHINGLES:
        for k in COMPONENTS:
            rows = corpus.make_hasher(kind, k, 7, Shingles(n, unit)).fingerprints(TEXTS)
            total += rows.astype(rows.dtype.newbyteorder("<")).tobytes()
    return total


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_bits_of_the_scheme(kind):
    expected = PINNED[kind, SCHEME_VERSIONS[kind.partition("_")[0]]]
    assert hashlib.sha256(by_the_library(kind)).hexdigest() == expected
