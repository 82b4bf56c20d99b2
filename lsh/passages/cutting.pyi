# Types of lsh/passages/cutting.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lsh.passages.repeats import AnchorFinder, KeyTable

LIMIT: int
RUN: np.dtype[np.void]
ROW: np.dtype[np.void]

@final
class Cutter:
    def __new__(
        cls,
        finder: AnchorFinder | None,
        table: KeyTable,
        make: Callable[[int, Any], np.ndarray[Any, Any]],
        secret: bytes,
        limit: int = ...,
    ) -> Cutter: ...
    def add_text(self, data: np.ndarray[Any, np.dtype[np.uint8]], /) -> None: ...
    def decide(self, runs: np.ndarray[Any, Any], kept: bool) -> np.ndarray[Any, Any]: ...
