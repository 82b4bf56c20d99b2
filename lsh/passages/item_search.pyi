# Types of lsh/passages/item_search.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lsh.passages.items import ItemTable
from lsh.text.batch import Batch

_Int64 = np.ndarray[Any, np.dtype[np.int64]]

HIT: np.dtype[np.void]

@final
class ItemSearch:
    def __new__(
        cls, table: ItemTable, locate: Callable[[bytes, list[tuple[int, int]]], list[tuple[int, int]]]
    ) -> ItemSearch: ...
    def count(self, batch: Batch, counts: _Int64) -> None: ...
    def search(self, batch: Batch, first: int, among_themselves: bool) -> np.ndarray[Any, np.dtype[np.void]]: ...
    def search_items(self, numbers: _Int64, ranks: _Int64) -> np.ndarray[Any, np.dtype[np.void]]: ...
