"""What the tests share: the folder of corpora, the profile of hypothesis, and the number of worker processes.

The corpora lie outside the repository: in the folder that the environment variable LSH_DATA names, else in
``shared/data`` beside the repository. A test that needs them is skipped, with the reason, where they are not.

Where pytest-xdist is installed, a run of a whole folder is spread over the processors, as with ``-n auto``; ``-n 0``
runs everything in one process. A run of single files or tests stays in one process, and so do ``-s`` and ``--pdb``.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
import strategies  # noqa: F401  (loads the profile of hypothesis, also for the tests that do not import it)

MAX_WORKERS = 8  # more take longer to start than they save


@pytest.hookimpl(tryfirst=True)  # before that of pytest-xdist, which starts what is asked for here
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Ask pytest-xdist for a worker for each processor, unless the command line says otherwise."""
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
        option.dist = "worksteal"  # each worker begins with tests that follow one another: their fixtures are made once


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of test corpora, or a skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LSH_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no test corpora: set LSH_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def upstream_vectors(data_folder: Path) -> dict:
    """Fingerprints computed by a build of mattilyra/LSH, with the texts and seeds they are of."""
    with gzip.open(data_folder / "upstream_vectors.json.gz") as file:
        return json.load(file)
