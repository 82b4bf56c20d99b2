from typing import Any

import numpy as np

from lsh.text.batch import Batch

_Spans = np.ndarray[Any, np.dtype[np.int64]]

def count_lines(block: bytes, /) -> int: ...
def json_fields(
    block: bytes, texts: tuple[bytes, ...], names: tuple[bytes, ...]
) -> tuple[list[Batch], list[Batch | None], _Spans] | None: ...
def delimited_cells(
    block: bytes, separator: bytes, places: tuple[int, ...], min_cells: int, max_cells: int, quotes: bool
) -> tuple[list[Batch], _Spans, int] | None: ...
