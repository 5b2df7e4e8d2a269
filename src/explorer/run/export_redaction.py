"""What is taken out of a run that is packed: what opens something in an address that its user gave it."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from explorer.journal.codec import encode_all, examine
from explorer.schema.events import AnyEvent, JournalRecord
from explorer.schema.network import secrets_in
from explorer.sources.http.url_allowlist import addresses_in, given_by_user
from explorer.text.sanitize import Redactor
from explorer.workspace.access import ENGINE_FOLDER, journal_path

MAX_BYTES = 64 * 1024 * 1024
"""Larger files are packed as they are: agents write none of that size."""
_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


def redactor_of(folder: Path) -> Redactor:
    """Return what finds the logins and keys in the addresses that the user gave a run, wherever it repeats them."""
    try:
        records = examine(journal_path(folder).read_bytes()).records
    except OSError:
        records = ()
    return Redactor(_secrets(record.event for record in records))


def _secrets(events: Iterable[AnyEvent]) -> set[str]:
    found: set[str] = set()
    for event in events:
        for url in addresses_in(given_by_user(event)):
            secrets = secrets_in(url)
            found.update(secrets)
            found.update(one.partition(":")[2] for one in secrets)
    return found - {""}


def redacted(path: str, content: bytes, redactor: Redactor) -> bytes:
    """Return a file's content without what the redactor finds; a journal stays readable, and loses its marks."""
    if not redactor.is_in(content):
        return content
    if path == f"{ENGINE_FOLDER}/journal.jsonl":
        found = examine(content)
        return encode_all(_cleaned(record, redactor) for record in found.records) + _text(found.torn, redactor)
    return _text(content, redactor)


def _cleaned(record: JournalRecord, redactor: Redactor) -> JournalRecord:
    clean = redactor.clean(record.event.model_dump_json())
    return record.model_copy(update={"event": _EVENT.validate_json(clean)})


def _text(content: bytes, redactor: Redactor) -> bytes:
    return redactor.clean(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
