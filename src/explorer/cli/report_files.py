"""A report in a file of the user's, in the format of its ending: whole or not at all, and over no other unasked."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from explorer.reports.formats.document import ReportDocument
from explorer.reports.formats.writers import format_of
from explorer.reports.verify.check import CLAIMS, SOURCES
from explorer.schema.errors import ConfigError, StorageError, ToolError
from explorer.schema.messages import JsonObject
from explorer.workspace.workspace import Workspace


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


def write_report(document: ReportDocument, target: Path, *, overwrite: bool) -> str:
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


def document_of(text: str, folder: Path, fields: Mapping[str, Any] | None = None) -> ReportDocument:
    """Return the report of a run, with what its folder says of its citations, sources and images.

    Args:
        text: The report, or an answer in words.
        folder: The run's.
        fields: What is said of an answer, which has no frontmatter.
    """
    workspace = Workspace(folder)
    is_report = fields is None
    return ReportDocument(
        text,
        fields or {},
        claims=_rows(workspace, CLAIMS) if is_report else (),
        sources=_rows(workspace, SOURCES),
        read_image=lambda path: _content(workspace, path),
    )


def _content(workspace: Workspace, path: str) -> bytes | None:
    try:
        return workspace.read_bytes(path)
    except (ToolError, OSError):
        return None


def _rows(workspace: Workspace, path: str) -> list[JsonObject]:
    """Return the objects of a file with one a line; none where it is missing or damaged: the report is worth more."""
    content = _content(workspace, path) or b""
    try:
        rows = [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict)]
