"""Read documents from files, and write the kept ones.

`Documents` reads files of one format, or a folder of texts, as often as needed; `write_kept` writes the kept records
byte for byte. Commands import from this module only.
"""

from lsh.files.documents import Documents, format_of, table_row, target, write_kept
from lsh.files.finding import expanded, has_ending_of_files
from lsh.files.prefetch import prefetched
from lsh.files.records import FOLDER, KNOWN, Block, Format, InputError, Record
from lsh.files.storage import (
    STANDARD,
    FolderTarget,
    Target,
    content,
    is_folder,
    is_stream,
    lies_in,
    names_folder,
    same_file,
)

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
    "format_of",
    "has_ending_of_files",
    "is_folder",
    "is_stream",
    "lies_in",
    "names_folder",
    "prefetched",
    "same_file",
    "table_row",
    "target",
    "write_kept",
]
