"""A report in a file of the user's, in the format of its ending: whole or not at all, and over no other unasked."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.reports.formats.writers import format_of
from explorer.schema.errors import ConfigError, StorageError

if TYPE_CHECKING:  # slow to import, and a target is looked at before a run starts
    from explorer.reports.formats.document import ReportDocument


def check_target(name: str, *, overwrite: bool) -> Path:
    """Return where a report is to be written, after all has been checked that can be before the work is paid.

    Raises:
        ConfigError: The ending has no format, a package is missing, the folder cannot be written in, or the file
            exists.
    """
    target = Path(name).expanduser()
    format_of(target.suffix)
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ConfigError(f"cannot write the report to {target}", hint="give a file in a folder that exists")
    if os.path.lexists(target) and not overwrite:
        raise ConfigError(f"{target} exists already", hint="give another file: -o FILE; or add --overwrite")
    return target


def write_report(document: "ReportDocument", target: Path, *, overwrite: bool) -> str:
    """Write a report; return a warning on what it lacks, empty without one.

    Raises:
        ConfigError: What its format needs is missing, or the file exists.
        StorageError: The disk refused.
    """
    content, warning = format_of(target.suffix).write(document)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        check_target(str(target), overwrite=overwrite)
        beside.replace(target)
    except OSError as error:
        raise StorageError(f"the report could not be written to {target}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return warning
