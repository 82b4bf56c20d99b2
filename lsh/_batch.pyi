# Types of lsh/_batch.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lsh._columns import Column

def extent(texts: tuple[Any, ...] | Column | Batch, start: int, stop: int, size: int) -> int: ...

@final
class Batch:
    def __new__(
        cls,
        texts: tuple[Any, ...] | list[Any] | Column | Batch,
        first: int = 0,
        missing: bool = False,
        transform: Callable[[bytes], str | bytes] | None = None,
        name: str = "texts",
        start: int = 0,
        stop: int | None = None,
    ) -> Batch: ...
    @staticmethod
    def of_bytes(data: np.ndarray[Any, Any], offsets: np.ndarray[Any, np.dtype[np.int64]]) -> Batch: ...
    def write(self, out: np.ndarray[Any, np.dtype[np.uint8]]) -> None: ...
    def take(self, positions: np.ndarray[Any, Any]) -> Batch: ...
    @staticmethod
    def join(batches: list[Batch]) -> Batch: ...
    def __len__(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def num_missing(self) -> int: ...
    def sizes(self) -> np.ndarray[Any, np.dtype[np.int64]]: ...
