"""Configuration of all tests: the folder of corpora, the hypothesis profile, and the number of worker processes.

The corpora are not in the repository. The environment variable LSH_DATA names their folder; the default is
``shared/data`` beside the repository. A test that needs a missing corpus is skipped, and the reason names it.

If pytest-xdist is installed, a run of a whole folder uses all processors, as with ``-n auto``; ``-n 0``
runs everything in one process. A run of single files or tests stays in one process, and so do ``-s`` and ``--pdb``.

A test that takes longer than `TIMEOUT` prints where all its threads are and ends its process, so that a run never
hangs. pytest-xdist names the test, starts a new worker and goes on.

Of a test with many cases, ``@pytest.mark.few(n)`` leaves n that are fast; the others get the mark ``slow``. Of more
than `MANY` slow cases of a test, every second one gets the mark ``full``, too: only `.ci/run --full` runs these.
"""

import faulthandler
import gc
import gzip
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from reading import COMPRESSIONS
from running import DOCUMENTS

MAX_WORKERS = 8  # more take longer to start than they save
_STDERR = pytest.StashKey[int]()
MANY = 6  # slow cases of a test
TIMEOUT = 240.0  # seconds; with LSH_TEST_FULL there is no limit


@pytest.hookimpl(tryfirst=True)  # runs before the hook of pytest-xdist, which starts the workers
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start one pytest-xdist worker per processor, unless the command line sets a number."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    said = option.numprocesses is not None or option.tx or option.distload
    debugged = option.usepdb or option.trace or option.capture == "no" or option.collectonly
    if said or debugged or not any(os.path.isdir(arg) for arg in config.args):
        return
    option.numprocesses = "auto"
    option.maxprocesses = option.maxprocesses or MAX_WORKERS
    if option.dist == "no":
        option.dist = "worksteal"  # each worker begins with consecutive tests, so they share fixtures


def pytest_report_header() -> str:
    """Say which package is tested: that of the checkout, or an installed one."""
    return f"lsh: {getattr(find_spec('lsh'), 'origin', 'not found')}"


def pytest_configure(config: pytest.Config) -> None:
    """Load the hypothesis profile where tests run; keep a copy of standard error, which pytest replaces in a test."""
    if not config.getoption("numprocesses", None):
        gc.disable()  # until all is collected, which stays: collections of garbage take a quarter of that time
        import strategies  # noqa: F401
    config.stash[_STDERR] = os.dup(2)


def _tests(items: list[pytest.Item], mark: str) -> list[list[pytest.Item]]:
    """Return the cases with a mark, by test."""
    tests = defaultdict(list)
    for item in [one for one in items if one.get_closest_marker(mark)]:
        tests[item.nodeid.partition("[")[0]].append(item)
    return list(tests.values())


@pytest.hookimpl(tryfirst=True)  # runs before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a test with the mark ``few(n)`` as slow, except n: the first, the last, some between."""
    for cases in _tests([item for item in items if not item.get_closest_marker("slow")], "few"):
        count = cases[0].get_closest_marker("few").args[0]
        fast = {i * (len(cases) - 1) // max(count - 1, 1) for i in range(count)}
        for i in set(range(len(cases))) - fast:
            cases[i].add_marker(pytest.mark.slow)
    for cases in _tests(items, "slow"):
        for case in cases[1::2] if len(cases) > MANY else ():
            case.add_marker(pytest.mark.full)
    from hypothesis import given, strategies

    given(strategies.none())(lambda _: None)()  # it looks for what refers to its random numbers, which is hidden soon
    gc.freeze()  # what was imported and collected, of which there is much: some tests ask for a garbage collection
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process, with the stacks of its threads, if a test takes longer than `TIMEOUT`."""
    if os.environ.get("LSH_TEST_FULL") or item.config.option.usepdb or sys.gettrace() is not None:
        return (yield)
    faulthandler.dump_traceback_later(TIMEOUT, exit=True, file=item.config.stash[_STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The place of a new index."""
    return tmp_path / "index"


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    """3,000 texts, of which most are near duplicates or copies, some are empty, and a third is not ASCII."""
    draw = random.Random(3)
    texts = []
    for i in range(1000):
        words = [f"w{draw.randrange(400)}" for _ in range(40)]
        texts.append(" ".join(words))
        texts.append(" ".join(words) if i % 3 else "")
        words[draw.randrange(40)] = "été"
        texts.append(" ".join(words))
    draw.shuffle(texts)
    return texts


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder with news.txt of five lines, of which two are a near duplicate and a copy of others."""
    (tmp_path / "news.txt").write_bytes(DOCUMENTS)
    return tmp_path


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of test corpora; skip the test if it does not exist."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LSH_DATA") or beside)  # empty: not set
    if not folder.is_dir():
        pytest.skip("no test corpora: set LSH_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def upstream_vectors(data_folder: Path) -> dict:
    """Fingerprints computed by a build of mattilyra/LSH, with their texts and seeds."""
    with gzip.open(data_folder / "upstream_vectors.json.gz") as file:
        return json.load(file)


@pytest.fixture(params=COMPRESSIONS)
def packed(request: pytest.FixtureRequest) -> str:
    """A compression that can be tested here."""
    if request.param == "zst":
        pytest.importorskip("zstandard", reason="zstandard is not installed")
    return str(request.param)
