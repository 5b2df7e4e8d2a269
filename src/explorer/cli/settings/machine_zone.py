"""The time zone of this machine, by its name in the IANA database."""

from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCALTIME = Path("/etc/localtime")
TIMEZONE_FILE = Path("/etc/timezone")
DATABASE = "zoneinfo/"
MAX_NAME_CHARS = 64


def machine_zone(
    environment: Mapping[str, str], localtime: Path = LOCALTIME, timezone_file: Path = TIMEZONE_FILE
) -> str:
    """Return what `TZ`, /etc/localtime or /etc/timezone name; empty, which stands for UTC, when none names a zone.

    `TZ` decides alone when it is set, also when it names no zone: rules written out (`CET-1CEST`) have no name.
    """
    if name := environment.get("TZ", "").strip():
        return _known(_in_database(name.removeprefix(":")))
    return _known(_linked(localtime)) or _known(_in_file(timezone_file))


def _linked(path: Path) -> str:
    """Return the zone that a link into the database leads to."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return ""
    return _in_database(str(target))


def _in_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _in_database(name: str) -> str:
    """Return a path into the database as the zone's name; a name stays."""
    if not name.startswith("/"):
        return name
    return name.partition(DATABASE)[2].removeprefix("posix/").removeprefix("right/")


def _known(name: str) -> str:
    if not name or len(name) > MAX_NAME_CHARS:
        return ""
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ""
