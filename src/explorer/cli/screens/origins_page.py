"""Where each file of a run comes from, for people."""

from collections.abc import Sequence

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.sanitize import one_line
from explorer.observe.provenance import FileOrigin, Write

MAX_IDS = 20


def origins_page(found: Sequence[FileOrigin]) -> str:
    """One block a file: what it cites, and each write of it."""
    return "\n\n".join(_block(origin) for origin in found) or "No agent wrote a file."


def _block(origin: FileOrigin) -> str:
    lines = [
        f"{one_line(origin.path)}  {counted(origin.lines, 'line')}  {one_line(origin.title)}".rstrip(),
        f"  cites   {_ids(origin.cites)}",
        *([f"  read    {_ids(origin.read)}: met in files and words of others"] if origin.read else []),
        *([f"  unseen  {_ids(origin.unseen)}: shown to none of its writers before"] if origin.unseen else []),
        *(f"  {_write(write)}" for write in origin.writes),
    ]
    return "\n".join(lines)


def _write(write: Write) -> str:
    when = write.at.astimezone().strftime("%H:%M:%S")
    return f"{write.tool}  {write.agent} ({write.role})  record {write.seq}, {when}  {write.bytes} bytes  {write.call}"


def _ids(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_IDS} more" if len(names) > MAX_IDS else ""
    return (", ".join(names[:MAX_IDS]) or "nothing") + more
