"""Keys are taken out of what is written, in every form in which they travel."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_stage import noon
from explorer.journal.journal import Journal, Protection, read
from explorer.schema.events import Steered, TurnFailed
from explorer.text.sanitize import REDACTED, Redactor
from thoroughness import examples

KEY = 'sk-ant-"api03/Zm9v+canary=='


def _travelling(key: str) -> dict[str, str]:
    raw = key.encode()
    return {
        "raw": key,
        "url": f"https://x.test/?k={quote(key, safe='')}&a=1",
        "json": json.dumps({"key": key}),
        "hex": f"0x{raw.hex()}",
        "HEX": raw.hex().upper(),
        "reversed": key[::-1],
        "base64": base64.b64encode(raw).decode(),
        "base64 behind one byte": base64.b64encode(b"a" + raw + b"zz").decode(),
        "base64 behind two bytes": base64.b64encode(b"ab" + raw + b"z").decode(),
        "base64 of a header": base64.b64encode(b"user:" + raw).decode(),
        "url-safe base64": base64.urlsafe_b64encode(raw).decode(),
    }


@pytest.mark.parametrize("form", _travelling(KEY))
def test_every_form_is_found(form: str) -> None:
    """Raw, URL, JSON, hex, base64 at any place in what is encoded, and backwards."""
    text = f"before {_travelling(KEY)[form]} behind"
    redactor = Redactor([KEY])
    assert redactor.is_in(text.encode())
    cleaned = redactor.clean(text)
    assert REDACTED in cleaned
    assert KEY not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith("behind")


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(min_size=12, max_size=60), st.binary(max_size=5), st.binary(max_size=5))
def test_no_place_in_base64_hides_a_key(raw: bytes, before: bytes, behind: bytes) -> None:
    """Whatever stands around a key when it is encoded, it is found."""
    key = raw.hex()[:40]
    assert Redactor([key]).is_in(base64.b64encode(before + key.encode() + behind))


def test_other_text_stays() -> None:
    """Nothing else is touched, short words are no keys, and without keys nothing is ever found."""
    text = "The key to success: sk-ant is a prefix; c2stYW50 is its base64."
    assert Redactor([KEY, "abc", ""]).clean(text) == text
    assert not Redactor().is_in(text.encode())
    assert Redactor().longest == 0


def test_a_key_at_the_end_may_be_its_beginning() -> None:
    """So much of a stream is held back as might become a key."""
    redactor = Redactor([KEY])
    assert redactor.begins_at("done") == 4
    text = f"error: {KEY[:9]}"
    assert text[redactor.begins_at(text) :] == KEY[:9]


def _all_of(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir() if path.is_file())


async def test_no_key_reaches_the_journal(tmp_path: Path) -> None:
    """Not on disk, not in the record that is folded and shown; the journal stays readable, checksums and all."""
    seen: list[str] = []
    journal = Journal.open(tmp_path, noon, [lambda record: seen.append(str(record))], None, Protection(Redactor([KEY])))
    try:
        record = await journal.append(
            TurnFailed(fault="credentials", message=f"Incorrect API key provided: {KEY}", attempt=1, waits_s=None)
        )
        await journal.append(Steered(agent="orchestrator", text=base64.b64encode(KEY.encode()).decode()))
    finally:
        journal.close()
    assert isinstance(record.event, TurnFailed)
    assert record.event.message == f"Incorrect API key provided: {REDACTED}"
    everything = _all_of(tmp_path) + "".join(seen)
    assert not Redactor([KEY]).is_in(everything.encode())
    assert [type(record.event).__name__ for record in read(tmp_path / "journal.jsonl")] == ["TurnFailed", "Steered"]


async def test_without_a_redactor_it_would(tmp_path: Path) -> None:
    """The control."""
    journal = Journal.open(tmp_path, noon)
    try:
        await journal.append(Steered(agent="orchestrator", text=KEY))
    finally:
        journal.close()
    assert Redactor([KEY]).is_in((tmp_path / "journal.jsonl").read_bytes())
