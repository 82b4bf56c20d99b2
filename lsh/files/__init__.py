"""Documents in files: records in, kept records out.

`Documents` reads files of one format, or a folder of text files, as often as needed; `write_kept` writes the kept ones
as they came in. What this module exports is what the commands and Spark use; the modules beside it are its parts.
"""

from lsh.files.documents import (
    Documents,
    expanded,
    table_row,
    target,
    write_kept,
    write_removed,
)
from lsh.files.prefetch import prefetched
from lsh.files.records import FOLDER, KNOWN, Block, Format, InputError, Record
from lsh.files.storage import STANDARD, FolderTarget, Target, content, is_stream, same_file

__all__ = [
    "FOLDER",
    "KNOWN",
    "STANDARD",
    "Block",
    "Documents",
    "FolderTarget",
    "Format",
    "InputError",
    "Record",
    "Target",
    "content",
    "expanded",
    "is_stream",
    "prefetched",
    "same_file",
    "table_row",
    "target",
    "write_kept",
    "write_removed",
]
