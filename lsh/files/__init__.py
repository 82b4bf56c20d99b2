"""Read documents from files, and write the kept ones.

`Documents` reads files of one format, or a folder of texts, as often as needed; `write_kept` writes the kept records
byte for byte. Commands import from this module only.
"""

from lsh.base.errors import InputError
from lsh.base.prefetch import prefetched
from lsh.files.documents import Documents, becomes_folder, table_row, target, write_kept
from lsh.files.finding import Sources, expanded, find_sources, has_ending_of_files, same_key, unknown_ending
from lsh.files.records import (
    FOLDER,
    KNOWN,
    Added,
    Block,
    Edits,
    Format,
    Ids,
    ReadOptions,
    Record,
    Values,
    decoded,
    microseconds,
)
from lsh.storage.disk import STANDARD, changed
from lsh.storage.inputs import content
from lsh.storage.locations import has_files, identity, is_folder, is_stream, lies_in, names_folder, pipe_of
from lsh.storage.remote import Place, check_target
from lsh.storage.targets import FolderTarget, Target
from lsh.storage.urls import is_url, local, shown, shown_in
