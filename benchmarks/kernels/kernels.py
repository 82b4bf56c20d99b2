"""Measure the kernels by level, scheme, size of the text and number of components, called from Python in one thread.

Also measured: the ratio to the plain algorithm (scalar_murmur.c, compiled here); short texts against long texts without
repeated shingles; two threads against one; the units char and word. The level is chosen at import, so each level runs
in its own process. Every kernel is first compared with tests/reference.py on some texts.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lsh
from lsh import _minhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness

SIZES = (10, 100, 300, 1000, 2000, 20_000, 200_000)
SHINGLES = (5, 8)
COMPONENTS = (128, 256)
SCHEMES: dict[str, dict[str, Any]] = {
    "murmur3, 32 bits": {"scheme": "murmur3", "hashbytes": 4},
    "murmur3, 64 bits": {"scheme": "murmur3", "hashbytes": 8},
    "fss": {"scheme": "fss"},
}


def hasher(scheme: str, n: int, k: int) -> lsh.MinHasher:
    return lsh.MinHasher(k, shingles=lsh.Shingles(n, "byte"), **SCHEMES[scheme])


def work(hashing: lsh.MinHasher, num_threads: int = 1) -> Callable[[list[bytes]], Any]:
    return lambda texts: hashing.fingerprints(texts, num_threads=num_threads)


def check(hashing: lsh.MinHasher, texts: list[bytes]) -> None:
    """Compare the fingerprints of some texts with tests/reference.py."""
    reference = harness.reference()
    fss = hashing.scheme == "fss"
    seeds = (hashing.num_seeds, int(hashing.seed_values[0])) if fss else hashing.seed_values.tolist()
    n = hashing.shingles.n
    expected = [
        reference.sketch(text, seeds, hashing.hashbytes if not fss else None, n=n, unit="byte") for text in texts
    ]
    harness.must(hashing.fingerprints(texts).tolist() == expected, f"fingerprints of {hashing!r} differ")


def by_size(corpus: harness.Corpus) -> list[dict[str, Any]]:
    """Measure MB of text per second by scheme, n, k and size."""
    cut = {size: harness.pieces(corpus.texts, size) for size in SIZES}
    found = []
    for scheme in SCHEMES:
        for n in SHINGLES:
            for k in COMPONENTS:
                hashing = hasher(scheme, n, k)
                if k == COMPONENTS[0]:
                    check(hashing, [cut[100][0], cut[1000][0]])
                for size in SIZES if scheme == "fss" else (100, 2000, 20_000):
                    rates = harness.in_slices({"": work(hashing)}, cut[size], 0.3)[""]
                    found.append({"scheme": scheme, "n": n, "k": k, "size": size, **rates})
    return found


def plain_algorithm(folder: Path) -> Callable[[bytes, np.ndarray, int], np.ndarray] | None:
    """Compile the plain algorithm: minima of a text for seeds and n; return None without a compiler."""
    library = folder / "scalar_murmur.so"
    source = Path(__file__).with_name("scalar_murmur.c")
    try:
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"cannot compile scalar_murmur.c, skipping the plain algorithm: {error}", file=sys.stderr)
        return None
    function = ctypes.CDLL(str(library)).plain_minima
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, size, pointer, size, size, pointer]
    function.restype = None

    def minima(text: bytes, seeds: np.ndarray, n: int) -> np.ndarray:
        out = np.empty(len(seeds), np.uint32)
        function(text, len(text), seeds.ctypes.data, len(seeds), n, out.ctypes.data)
        return out

    return minima


def distinct_share(texts: list[bytes], n: int) -> float:
    """Return the mean share of distinct shingles, over some texts."""
    some = texts[:: max(1, len(texts) // 200)]
    shares = [len({text[i : i + n] for i in range(len(text) - n + 1)}) / (len(text) - n + 1) for text in some]
    return sum(shares) / len(shares)


def against_plain(corpora: list[harness.Corpus]) -> list[dict[str, Any]]:
    """Measure the ratio to the plain algorithm: 128 seeds of 32 bits, texts of 2,000 bytes; also the 64-bit rate."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        plain = plain_algorithm(Path(folder))
        for corpus in corpora if plain else []:
            texts = harness.pieces(corpus.texts, 2000)
            for n in SHINGLES:
                hashing = hasher("murmur3, 32 bits", n, 128)
                seeds = np.array(hashing.seed_values)
                for text in texts[:5]:
                    harness.must((plain(text, seeds, n) == hashing.fingerprint(text)).all(), "the results differ")
                measured = harness.in_slices(
                    {
                        "plain": lambda some, n=n, seeds=seeds: [plain(text, seeds, n) for text in some],
                        "lsh": work(hashing),
                        "64 bits": work(hasher("murmur3, 64 bits", n, 128)),
                    },
                    texts,
                    1.0,
                )
                ratios = {
                    f"{which}_ratio": measured["lsh"][f"{which}_mb_per_second"]
                    / measured["plain"][f"{which}_mb_per_second"]
                    for which in ("best", "median")
                }
                share = distinct_share(texts, n)
                found.append({"text": corpus.name, "n": n, "distinct_share": share, **ratios, **measured})
    return found


def without_repeats(corpus: harness.Corpus) -> list[dict[str, Any]]:
    """Measure texts of 100 bytes against texts of 2,000 bytes that have no repeated shingles to skip."""
    letters = random.Random(1)
    long = ["".join(letters.choices(string.ascii_letters, k=2000)).encode() for _ in range(500)]
    short = harness.pieces(corpus.texts, 100)
    found = []
    for scheme in ("murmur3, 32 bits", "murmur3, 64 bits"):
        for n in SHINGLES:
            hashing = hasher(scheme, n, 128)
            rates = {
                name: harness.in_slices({"": work(hashing)}, texts, 0.5)[""]
                for name, texts in (("100 bytes", short), ("2,000 bytes", long))
            }
            ratio = rates["100 bytes"]["best_mb_per_second"] / rates["2,000 bytes"]["best_mb_per_second"]
            found.append({"scheme": scheme, "n": n, "best_ratio": ratio, **rates})
    return found


def two_threads(corpus: harness.Corpus) -> list[dict[str, Any]]:
    """Measure two threads against one, by wall time."""
    found = []
    for scheme, size, count in (("fss", 1000, 8000), ("fss", 100, 60_000), ("murmur3, 32 bits", 2000, 2000)):
        hashing, texts = hasher(scheme, 5, 128), harness.pieces(corpus.texts, size)
        rates = harness.in_slices(
            {"1": work(hashing, 1), "2": work(hashing, 2)},
            (texts * (count // len(texts) + 1))[:count],
            1.0,
            time.perf_counter,
            0.03,
        )
        ratio = rates["2"]["best_mb_per_second"] / rates["1"]["best_mb_per_second"]
        found.append({"scheme": scheme, "size": size, "best_ratio": ratio, "threads": rates})
    return found


def units(corpus: harness.Corpus) -> list[dict[str, Any]]:
    """Measure units and normalisations of fss, on ASCII texts of 1,000 characters."""
    ascii_texts = [
        text.decode("ascii", "replace").replace("\ufffd", " ") for text in harness.pieces(corpus.texts, 1000)
    ]
    everything = {"lowercase": True, "collapse_whitespace": True, "strip_punctuation": True}
    found = []
    for n, unit, options in (
        (5, "byte", {}),
        (5, "char", {}),
        (5, "char", everything),
        (5, "word", {}),
        (5, "word", {"lowercase": True}),
    ):
        hashing = lsh.MinHasher(128, scheme="fss", shingles=lsh.Shingles(n, unit, **options))
        rates = harness.in_slices({"": work(hashing)}, ascii_texts)[""]
        found.append({"n": n, "unit": unit, "options": sorted(options), **rates})
    return found


def one_level() -> dict[str, Any]:
    corpus = harness.news()
    others = [harness.pages(), harness.licences()]
    return {
        "by_size": by_size(corpus),
        "against_plain": against_plain([corpus, *filter(None, others)]),
        "without_repeats": without_repeats(corpus),
        "two_threads": two_threads(corpus),
        "units": units(corpus),
    }


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--level", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.level:
        print(json.dumps(one_level()))
        return
    levels = {}
    for level in _minhash.simd_levels():
        print(f"level {level} ...", flush=True)
        environment = {**os.environ, _minhash.LEVEL_VARIABLE: level}
        ran = subprocess.run(
            [sys.executable, __file__, "--level"], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        levels[level] = json.loads(ran.stdout)
    about = "fingerprints by level, scheme, size of text and number of components; single thread, CPU time"
    harness.write("kernels", {"about": about, "data": harness.news().describe(), "levels": levels}, options.folder)


if __name__ == "__main__":
    main()
