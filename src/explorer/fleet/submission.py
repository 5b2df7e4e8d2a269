"""What is submitted with a question of the fleet: its files, its settings, and the names that users give.

Files travel with the question in the database, whatever the store of runs is.

The run's first session takes them into its folder (`inputs/`), as it does with files of the command line. Nothing that
a submission names is opened on a worker: it brings contents, and no paths.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import sqlalchemy as sa

from explorer.documents.corpus.folder import MAX_FILE_BYTES
from explorer.fleet.database import INPUTS, FleetDatabase
from explorer.schema.errors import ConfigError
from explorer.schema.limits import Limits
from explorer.schema.messages import JsonObject
from explorer.schema.settings import Settings
from explorer.text.sanitize import visible
from explorer.workspace.access import MAX_NAME_BYTES

MAX_FILES = 20
MAX_BYTES = 64 * 1024 * 1024
"""The size of all files of one question together."""


def check_inputs(files: Mapping[str, bytes]) -> None:
    """Check that files can travel with a question.

    Raises:
        ConfigError: They are too many or too large.
    """
    _check({name: len(content) for name, content in files.items()})


def _check(sizes: Mapping[str, int]) -> None:
    hint = "give the parts that matter; or put them into a folder that the workers have: explorer worker --corpus DIR"
    if len(sizes) > MAX_FILES:
        raise ConfigError(f"{len(sizes)} files are given, and {MAX_FILES} are taken", hint=hint)
    if sum(sizes.values()) > MAX_BYTES or any(size > MAX_FILE_BYTES for size in sizes.values()):
        limits = f"{MAX_FILE_BYTES} for one, and {MAX_BYTES} for all together"
        raise ConfigError(f"the files have {sum(sizes.values())} bytes; the limits are {limits}", hint=hint)


def keep_inputs(connection: sa.Connection, run_id: str, files: Mapping[str, bytes]) -> None:
    """Put the files of a new run into the database, together with the other changes of a transaction."""
    if files:
        rows = [{"run_id": run_id, "name": name, "content": content} for name, content in files.items()]
        connection.execute(sa.insert(INPUTS), rows)


def inputs_of(database: FleetDatabase, run_id: str) -> dict[str, bytes]:
    """Return the files of a run that has not begun.

    Raises:
        ConfigError: They cannot be used: others may write to the database.
        StorageError: The database does not answer.
    """
    sizes = sa.select(INPUTS.c.name, sa.func.length(INPUTS.c.content)).where(INPUTS.c.run_id == run_id)
    chosen = sa.select(INPUTS.c.name, INPUTS.c.content).where(INPUTS.c.run_id == run_id).order_by(INPUTS.c.name)
    with database.transaction() as connection:
        found = {str(name): int(size) for name, size in connection.execute(sizes)}
        for name in found:
            _check_name(name)
        _check(found)
        return {str(name): bytes(content) for name, content in connection.execute(chosen)} if found else {}


def _check_name(name: str) -> None:
    is_plain = PurePosixPath(name).name == name and name not in {"", ".", ".."} and "\0" not in name
    if not is_plain or len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise ConfigError("a file that was submitted with the question has no usable name")


PLANS = frozenset({"plan", "initial_queries", "max_rounds", "reflect"})
SUBMITTED = PLANS | {"model", "role_models", "effort", "language", "judge", "is_sample", "lean", "library"}
"""Settings, besides the limits, that a submission may have: what it asks for, and nothing of its machine."""


def submitted(settings: Settings) -> JsonObject:
    """Return what was set explicitly, of what a submission may have, as JSON."""
    public: dict[str, Any] = settings.public()
    chosen = {name: public[name] for name in sorted(settings.model_fields_set & SUBMITTED)}
    limits = {name: public["limits"].get(name) for name in sorted(settings.limits.model_fields_set)}
    return {**chosen, "limits": limits} if limits else chosen


def settings_of(submission: str, own: Settings) -> Settings:
    """Return the settings for a run.

    Args:
        submission: What was submitted with it, as JSON.
        own: The worker's, whose limits are never exceeded.

    Raises:
        ConfigError: What was submitted is not understood here.
    """
    asked = Settings.recorded(json.loads(submission))
    chosen = {name: getattr(asked, name) for name in asked.model_fields_set & SUBMITTED}
    return own.model_copy(update=chosen | {"limits": _lower(own.limits, asked.limits)})


def _lower(own: Limits, asked: Limits) -> Limits:
    """Return the lower of two limits each; one that neither sets stays unset."""
    values: dict[str, float | None] = {}
    for name in own.model_fields_set | asked.model_fields_set:
        pair = (getattr(own, name), getattr(asked, name) if name in asked.model_fields_set else None)
        set_ones = [one for one in pair if one is not None]
        values[name] = min(set_ones) if set_ones else None
    return Limits.model_validate(values)


MAX_NAME_CHARS = 255


def check_name(what: str, name: str) -> None:
    """Check that a name can be stored and shown.

    Args:
        what: What it names, for the error.
        name: The name.

    Raises:
        ConfigError: It is too long, or has characters that are no text.
    """
    if len(name) > MAX_NAME_CHARS:
        raise ConfigError(f"the {what} has {len(name)} characters; the limit is {MAX_NAME_CHARS}", hint="shorten it")
    if name != visible(name) or {"\n", "\t"} & {*name}:
        raise ConfigError(f"the {what} has characters that cannot be stored or shown", hint="use letters and digits")


def may_name_run(name: str) -> bool:
    """Return whether a text may be a run's id or the beginning of one; what may not be is not looked for."""
    return bool(name) and name.isprintable() and len(name) <= MAX_NAME_CHARS
