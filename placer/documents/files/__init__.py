"""Reading input files within limits, and writing output files all or nothing."""

from placer.documents.files.reading import (
    MAX_BYTES,
    beside,
    decode,
    decompressed,
    files_beside,
    inputs_kept,
    is_file,
    read_bytes,
    read_text,
    shown_name,
)
from placer.documents.files.writing import (
    check_target,
    make_folder,
    write_bytes,
    write_compressed,
    write_text,
)

__all__ = [
    "MAX_BYTES",
    "beside",
    "check_target",
    "decode",
    "decompressed",
    "files_beside",
    "inputs_kept",
    "is_file",
    "make_folder",
    "read_bytes",
    "read_text",
    "shown_name",
    "write_bytes",
    "write_compressed",
    "write_text",
]
