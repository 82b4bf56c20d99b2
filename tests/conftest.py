"""What the tests share: the folder of corpora, and the profile of hypothesis.

The corpora lie outside the repository: in the folder that the environment variable LSH_DATA names, else in
``shared/data`` beside the repository. A test that needs them is skipped, with the reason, where they are not.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "lsh", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("quick", settings.get_profile("lsh"), max_examples=15)  # for builds that run slowly
settings.load_profile(os.environ.get("LSH_TEST_PROFILE", "lsh"))


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
