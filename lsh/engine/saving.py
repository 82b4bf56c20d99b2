"""What was computed of the texts of a corpus, in a journal, so that a run that was killed goes on after them.

The first record has the number of documents that the bands were planned for, the secret of the content keys, and a name
of what computes the rows. Each other one has the rows of some documents that follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsh.base.arrays import Array

if TYPE_CHECKING:  # most runs do not need it
    from lsh.storage.journal import Journal, Record

Rows = tuple[int, list[Array], int]  # the position after the last document, their arrays, and how many are missing


class SavedRows:
    """The rows of the documents of a corpus in a journal.

    Parameters
    ----------
    journal : Journal
        The journal, empty or of a run that was killed.

    Attributes
    ----------
    planned : int or None
        For how many documents that run planned its bands; ``None`` if there was none.
    secret : bytes
        The key of its content keys.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._records: Iterator[Record] = journal.records()
        self.planned: int | None
        (self.planned, secret, name), _ = next(self._records, ((None, b"", ""), []))
        self.secret, self._name = secret, str(name)

    def begin(self, planned: int, secret: bytes, name: str) -> None:
        """Begin with no rows, of what has this name."""
        self.planned, self.secret, self._name = planned, secret, name
        self._journal.clear()
        self._journal.append([planned, secret, self._name])

    def suits(self, name: str) -> bool:
        """Tell whether there are rows of what has this name."""
        return self.planned is not None and self._name == name

    def rows(self, count: int) -> Iterator[Rows]:
        """Yield the rows of the first documents, at most of `count`; `append` follows them."""
        for (stop, missing), arrays in self._records:
            if stop > count:
                return
            yield stop, arrays, missing

    def append(self, rows: Rows) -> None:
        """Append rows."""
        stop, arrays, missing = rows
        self._journal.append([stop, missing], arrays)
