"""The compressions that can be tested here."""

from __future__ import annotations

import pytest
from reading import COMPRESSIONS


@pytest.fixture(params=COMPRESSIONS)
def packed(request):
    if request.param == "zst":
        pytest.importorskip("zstandard", reason="zstandard is not installed")
    return request.param
