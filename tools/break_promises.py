#!/usr/bin/env python3
"""Break each promise of docs/promises.md on purpose, and run the tests that must fail then.

`python tools/break_promises.py [NUMBER...]` works on a copy of the checkout, in which the extensions are built: each
change of `BREAKS` is applied, what it touches is built again, the tests that it names are run, and the change is taken
back. Without the change, the same tests must pass. A test that passes in spite of the change, a change that does not
fit the sources, and a test of the page that no change breaks are errors. Tests that need Spark or the corpora are
skipped without them, and printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"
COMPILED = {".c", ".h", ".pyx", ".pxd", ".pxi"}
SECONDS = 900  # for the tests of a change


class Break(NamedTuple):
    """A small change of the sources that breaks a promise."""

    promise: int
    path: str
    before: str
    after: str
    tests: tuple[str, ...]


BREAKS = (
    Break(  # the witness is another document
        1,
        "lsh/engine/dedup.py",
        'removed["kept"][rows] = distinct[decided.removed.others[some]]',
        'removed["kept"][rows] = distinct[decided.removed.documents[some]]',
        ("test_nothing_is_dropped_without_a_witness", "test_deduplicate_against_brute_force"),
    ),
    Break(  # the bands may miss thirty times as many pairs
        2,
        "lsh/sketch/planning.py",
        "missed = log((1.0 - recall - loss) / (1.0 - loss))",
        "missed = log(min(30.0 * (1.0 - recall), 0.9))",
        ("test_recall_of_pairs_at_the_threshold", "test_recall_on_reuters"),
    ),
    Break(  # of a template, a document is compared with the first hundred only
        2,
        "lsh/engine/dedup.py",
        "LIMIT = 1 << 18",
        "LIMIT = 100",
        ("test_copies_within_a_template_are_found",),
    ),
    Break(  # AVX2 rotates by another number
        3,
        "lsh/kernels/avx2.c",
        "cross = _mm256_add_epi64(_mm256_slli_epi64(cross, 32),",
        "cross = _mm256_add_epi64(_mm256_slli_epi64(cross, 31),",
        ("test_levels_give_the_same_bits",),
    ),
    Break(  # another seed
        3,
        "lsh/_minhash.pyx",
        "_kernels.fss(&document, self.seed, self.words,",
        "_kernels.fss(&document, self.seed + 1, self.words,",
        ("test_bits_of_the_scheme", "test_generated", "test_files"),
    ),
    Break(  # sections of a segment begin elsewhere
        3,
        "lsh/segments/file_format.py",
        "ALIGNMENT = 64 ",
        "ALIGNMENT = 128 ",
        ("test_the_bytes_of_version_2_are_the_same",),
    ),
    Break(  # a text is cut off
        4,
        "lsh/_minhash.pyx",
        "cdef c.lsh_document document = c.lsh_document(text, length, self.unit, self.n)\n        cdef int32_t *narrow",
        "cdef c.lsh_document document = c.lsh_document(text, min(length, <size_t> 2000), self.unit, self.n)\n"
        "        cdef int32_t *narrow",
        ("test_long_texts", "test_texts_of_more_than_100_000_shingles"),
    ),
    Break(  # a part of a large text is left out
        4,
        "lsh/text/sets.pyx",
        "    for part in range(<uint64_t> 1 << part_bits):\n        if not _is_whole(sets, i):",
        "    for part in range((<uint64_t> 1 << part_bits) - 1):\n        if not _is_whole(sets, i):",
        ("test_large_texts_are_compared_in_parts",),
    ),
    Break(  # components of murmur3 depend on each other
        5,
        "lsh/sketch/hasher.py",
        "Fingerprinter(code, unit, shingles.n, values, components, flags)",
        "Fingerprinter(code, unit, shingles.n, np.repeat(values[::2], 2)[: len(values)], components, flags)",
        ("test_unbiased_and_binomial_variance",),
    ),
    Break(  # a quarter of the components of fss is always equal
        5,
        "lsh/_minhash.pyx",
        "            _kernels.fss(&document, self.seed, self.words, self.k, scratch.kernel, <uint32_t *> out)\n",
        "            _kernels.fss(&document, self.seed, self.words, self.k, scratch.kernel, <uint32_t *> out)\n"
        "            memset(out, 0, self.k // 4 * sizeof(uint32_t))\n",
        ("test_unbiased", "test_variance"),
    ),
    Break(  # an interval of half the width
        5,
        "lsh/sketch/rows.py",
        "z = NormalDist().inv_cdf((1 + confidence) / 2)",
        "z = NormalDist().inv_cdf((1 + confidence) / 2) / 2",
        ("test_interval_covers_as_often_as_it_should",),
    ),
    Break(  # quotients of single precision
        6,
        "lsh/text/set_workspace.pxi",
        "    return <double> shared / <double> (a + b - shared)\n",
        "    return <float> shared / <float> (a + b - shared)\n",
        ("test_similarities_against_twin", "test_threshold_is_one_division"),
    ),
    Break(  # texts of one hash count as identical
        6,
        "lsh/text/batch.pyx",
        "            if not same:\n                break\n    return same",
        "            if not same:\n                same = True\n                break\n    return same",
        ("test_texts_of_one_content_key_are_told_apart",),
    ),
    Break(  # the bound is not kept
        7,
        "lsh/base/budget.py",
        "    return MemoryBudget(size, None if size is temp_dir is None",
        "    return MemoryBudget(None if size is None else 1 << 40, None if size is temp_dir is None",
        ("test_the_peak_of_a_process", "test_the_peak_of_long_texts"),
    ),
    Break(  # an error names a bound that is too small
        7,
        "lsh/base/budget.py",
        'problem = f"must be {size_argument(count * each)} or more for {documents}"',
        'problem = f"must be {size_argument(count * each // 2)} or more for {documents}"',
        ("test_the_bound_that_an_error_names_is_enough",),
    ),
    Break(  # a bound that is too small is accepted
        7,
        "lsh/engine/corpus.py",
        "if self.budget.bound is not None and count * each > self.budget.bound:",
        "if self.budget.bound is not None and count * each > 100 * self.budget.bound:",
        ("test_a_bound_that_is_too_small_is_an_error_before_the_work",),
    ),
    Break(  # under a bound the last document is kept
        8,
        "lsh/engine/dedup.py",
        'return Order([(new, total, False), (0, new, priority == "last")], old_from=new)',
        'return Order([(new, total, False), (0, new, (priority == "last") != corpus.budget.is_bounded)], old_from=new)',
        ("test_files_change_nothing",),
    ),
    Break(  # the members of an index get each other's ids
        8,
        "lsh/engine/index_candidates.py",
        "        return [ids[i] for i in back.tolist()]",
        "        return [ids[-1 - i] for i in back.tolist()]",
        ("test_equals_the_list",),
    ),
    Break(  # a component is decided in the order of its texts
        8,
        "lsh/spark/__init__.py",
        'small.repartition("component").sortWithinPartitions("component", *order)',
        'small.repartition("component").sortWithinPartitions("component", "text")',
        ("test_partitions",),
    ),
    Break(  # an output is written in its place
        9,
        "lsh/storage/disk.py",
        'open(self._beside, "xb", WRITTEN, opener=_private)',
        'open(self._place, "wb", WRITTEN)',
        ("test_full_disk",),
    ),
    Break(  # what an interrupted run has written stays
        9,
        "lsh/storage/disk.py",
        "                os.unlink(self._beside)",
        "                pass",
        ("test_an_interrupt_while_a_file_is_opened_leaves_nothing",),
    ),
    Break(  # a commit lacks its record
        9,
        "lsh/segments/log.py",
        'self._file.write(b"".join(parts))',
        'self._file.write(b"".join(parts[:-1]))',
        ("test_each_operation_fails", "test_a_killed_writer"),
    ),
    Break(  # a commit is not on the disk when it returns
        9,
        "lsh/segments/log.py",
        'self._file.write(b"".join(parts))\n        self._file.sync()\n',
        'self._file.write(b"".join(parts))\n',
        ("test_power_is_lost_at_each_operation",),
    ),
    Break(  # checksums of blocks are not compared
        10,
        "lsh/kernels/sorted.h",
        "        if (block_sum(blocks, block) != lsh_load64(blocks->sums + 8 * block))\n            return block;\n",
        "",
        ("test_each_byte_is_flipped",),
    ),
    Break(  # damage of a segment is an error of another kind
        10,
        "lsh/segments/segment.py",
        "        return file_format.damaged(self.name, what)",
        "        raise RuntimeError(what)",
        ("test_files_with_right_checksums",),
    ),
    Break(  # control characters in strings are accepted
        10,
        "lsh/kernels/json.c",
        "        if (*at < 0x20)\n            return NULL;\n        if (*at != '\\\\') {",
        "        if (*at != '\\\\') {",
        ("test_what_is_found_in_damaged_json_is_what_python_finds",),
    ),
    Break(  # another package is imported
        11,
        "lsh/base/version.py",
        '__version__ = "',
        'import pytest\n\n__version__ = "',
        ("test_import_loads_numpy_and_the_standard_library",),
    ),
    Break(  # the first byte of a passage that is cut counts as kept
        12,
        "lsh/passages/cutting.pyx",
        "            self._end_zone(at)\n            self.cut_start",
        "            self._end_zone(at + 1)\n            self.cut_start",
        ("test_random_corpora",),
    ),
    Break(  # windows that begin furthest before their anchors have no key
        12,
        "lsh/passages/repeats.pyx",
        "Side(window - half + 1, window - c.LSH_GRAM)",
        "Side(window - half + 1, window - c.LSH_GRAM - 2)",
        ("test_random_corpora", "test_real_texts"),
    ),
    Break(  # items of which a text has just enough shingles are not looked at
        13,
        "lsh/passages/item_search.pyx",
        "if <uint32_t> seen.here + seen.before >= seen.bar:",
        "if <uint32_t> seen.here + seen.before > seen.bar:",
        ("test_items_are_found_as_defined",),
    ),
    Break(  # windows of just the longest length are not tried
        13,
        "lsh/passages/item_search.pyx",
        "while units > work.longest:",
        "while units >= work.longest:",
        ("test_items_are_found_as_defined",),
    ),
)


def named() -> set[str]:
    """Return the tests that the page names."""
    return set(re.findall(r"\[`(test_\w+)`\]", PAGE.read_text(encoding="utf-8")))


def prepared(folder: Path) -> Path:
    """Return a copy of the checkout whose extensions are built."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    build(folder)
    return folder


def build(folder: Path) -> None:
    """Build the extensions in place, those whose sources changed."""
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def outcome(folder: Path, name: str) -> str:
    """Return how a test ends in a folder: failed, passed or skipped."""
    places = [path for path in (folder / "tests").rglob("test_*.py") if f"\ndef {name}(" in path.read_text("utf-8")]
    if not places:
        raise SystemExit(f"there is no test {name}")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", ""]
    variables = os.environ | {"PYTHONPATH": str(folder)}
    command += ["-c", str(folder / "pyproject.toml"), "--rootdir", str(folder)]
    command += [f"{path}::{name}" for path in places]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode not in (0, 5):  # also of a signal
        return "failed"
    return "passed" if re.search(r"\d+ passed", done.stdout) else "skipped"


def main() -> int:
    """Apply each change, and report the tests that do not fail."""
    wanted = set(map(int, sys.argv[1:]))
    missing = sorted(named() - {test for one in BREAKS for test in one.tests})
    wrong = 0 if wanted else len(missing)
    for name in () if wanted else missing:
        print(f"no change breaks {name}")
    with tempfile.TemporaryDirectory() as temp:
        folder = prepared(Path(temp).resolve())
        for one in BREAKS:
            if wanted and one.promise not in wanted:
                continue
            path = folder / one.path
            source = path.read_text(encoding="utf-8")
            if source.count(one.before) != 1:
                print(f"{one.promise}: {one.path} has {source.count(one.before)} places such as {one.before!r}")
                wrong += 1
                continue
            for name in one.tests:
                found = outcome(folder, name)
                if found == "failed":
                    print(f"{one.promise}: {name} fails without the change")
                    wrong += 1
            path.write_text(source.replace(one.before, one.after), encoding="utf-8")
            if path.suffix in COMPILED:
                build(folder)
            for name in one.tests:
                found = outcome(folder, name)
                wrong += found == "passed"
                print(f"{one.promise}: {one.path}: {name} {found}{'' if found != 'passed' else ', but must fail'}")
                sys.stdout.flush()
            path.write_text(source, encoding="utf-8")
            if path.suffix in COMPILED:
                build(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
