"""All attacks of the table, by area: one module of attacks each, listed here."""

from collections.abc import Mapping, Sequence

from attacks import (
    carried_runs,
    commands,
    fenced_carriers,
    fleet_queues,
    folder_extensions,
    folders,
    letter_channels,
    office_files,
    open_connections,
    parsers,
    planted_indexes,
    planted_pages,
    small_things,
)
from attacks.attack import Attack

AREAS: Mapping[str, Sequence[Attack]] = {
    "carriers": fenced_carriers.ATTACKS,
    "carried runs": carried_runs.ATTACKS,
    "commands": commands.ATTACKS,
    "fleet queues": fleet_queues.ATTACKS,
    "folder extensions": folder_extensions.ATTACKS,
    "folders": folders.ATTACKS,
    "letter channels": letter_channels.ATTACKS,
    "office files": office_files.ATTACKS,
    "open connections": open_connections.ATTACKS,
    "parsers": parsers.ATTACKS,
    "planted indexes": planted_indexes.ATTACKS,
    "planted pages": planted_pages.ATTACKS,
    "small things": small_things.ATTACKS,
}
"""The attacks of each area. An area is a module of this folder, such as `folders.py` with its `ATTACKS`."""
