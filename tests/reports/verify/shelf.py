"""Small sources for the tests of the check."""

import hashlib
import json
from pathlib import Path
from typing import Any

from explorer.schema.events import Source

GOLD = Path(__file__).parent / "gold"


def source(identifier: str, text: str, **facts: Any) -> Source:
    """A source of the ledger with this text."""
    given = {"url": f"https://{identifier.lower()}.example/", "title": identifier, "kind": "page", "via": "direct"}
    given |= {"retrieved": "2026-08-11T08:00:00Z", **facts}
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Source.model_validate({"id": identifier, "sha256": digest, "chars": len(text), **given})


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of a gold file."""
    return [json.loads(line) for line in (GOLD / name).read_text(encoding="utf-8").splitlines()]


def gold_shelf() -> tuple[dict[str, Source], dict[str, str]]:
    """The gold set's sources and their texts, by id."""
    texts = {row["id"]: row["text"] for row in rows("sources.jsonl")}
    shown = {
        row["id"]: source(row.pop("id"), row.pop("text"), **row) for row in (dict(one) for one in rows("sources.jsonl"))
    }
    return shown, texts
