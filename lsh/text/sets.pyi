# Types of lsh/text/sets.pyx; compared with the build by mypy's stubtest.

from typing import Any, final

import numpy as np

from lsh.text.batch import Batch

MAX_CACHED: int
MAX_SPLIT: int

@final
class ShingleSets:
    def __new__(
        cls,
        batch: Batch,
        unit: int,
        n: int,
        flags: int = 0,
        *,
        max_cached: int = ...,
        max_shingles: int = ...,
        max_split: int = ...,
        secret: bytes | None = None,
    ) -> ShingleSets: ...
    def matrix(self, rows: int, first_column: int) -> np.ndarray[Any, np.dtype[np.float64]]: ...
