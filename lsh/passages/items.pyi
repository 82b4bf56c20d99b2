# Types of lsh/passages/items.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lsh.text.batch import Batch

_Int64 = np.ndarray[Any, np.dtype[np.int64]]

REASONS: tuple[str, ...]

def cleared(count: int, kind: type[np.generic]) -> np.ndarray[Any, np.dtype[Any]]: ...

@final
class ItemTable:
    def __new__(
        cls,
        unit: int,
        n: int,
        flags: int,
        is_regular: bool,
        apply: Callable[[bytes], str | bytes],
        window: float,
        threshold: float,
        min_shared: int,
    ) -> ItemTable: ...
    @property
    def count(self) -> int: ...
    @property
    def num_entries(self) -> int: ...
    def add(self, batch: Batch, /) -> None: ...
    def index(self, all_shingles: bool, /) -> None: ...
    def ignore(self, counts: _Int64, most: int) -> None: ...
    def states(self) -> np.ndarray[Any, np.dtype[np.uint8]]: ...
