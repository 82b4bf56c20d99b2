# Types of lsh/_sets.pyx; compared with the build by mypy's stubtest.

from typing import Any, final

import numpy as np

from lsh._batch import Batch

@final
class ShingleSets:
    def __new__(
        cls,
        batch: Batch,
        unit: int,
        n: int,
        flags: int = 0,
        *,
        most_cached: int = ...,
        most_shingles: int = ...,
        secret: bytes | None = None,
    ) -> ShingleSets: ...
    def similarities(
        self,
        firsts: np.ndarray[Any, np.dtype[np.int64]],
        seconds: np.ndarray[Any, np.dtype[np.int64]],
        least: float = 0.0,
    ) -> np.ndarray[Any, np.dtype[np.float64]]: ...
    def matrix(self, rows: int, first_column: int) -> np.ndarray[Any, np.dtype[np.float64]]: ...
