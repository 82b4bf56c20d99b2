"""Fields that are added to the records of a file: what each near duplicate would have been removed for.

`Added` has the names and the values; the reader of each format puts them at the end of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

Values = Sequence[bytes]  # of a record, one for each name; the first is an id


class Added:
    """The values of the added fields, in the order of the documents.

    Parameters
    ----------
    names : sequence of str
        The names of the fields.
    values : iterator
        For each document its values, ``None`` for a document that has none.
    """

    def __init__(self, names: Sequence[str], values: Iterator[Values | None]) -> None:
        self.names, self._values = tuple(names), values

    def next(self, count: int) -> list[Values | None]:
        """Return the values of the next documents."""
        return list(islice(self._values, count))

    def problem(self, names: Sequence[str]) -> str:
        """Return the error message if a file has a field of one of the names, else an empty string."""
        found = next((name for name in self.names if name in names), None)
        return "" if found is None else f"it has a field {found!r}, which --mark adds; rename it"
