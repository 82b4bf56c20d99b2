"""Documents in files that outlive the process: `lsh.Index`, and its errors."""

from lsh.segments.disk import IndexLockedError
from lsh.segments.file_format import IndexDamagedError
from lsh.store.index import Index, IndexReplacedError

__all__ = ["Index", "IndexDamagedError", "IndexLockedError", "IndexReplacedError"]
