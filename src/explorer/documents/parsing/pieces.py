"""Pieces of HTML as texts, read by the process that parses: all pieces of a thread in one request."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from explorer.documents.parsing.document import MAX_PIECE_CHARS, Document
from explorer.schema.errors import ToolError

BATCH_CHARS = 800_000
"""The number of characters from which pieces go into another request: each has a limit of time, its reply of size."""
TEXTS = TypeAdapter(list[str])


class PieceParser(Protocol):
    """The part of `DocumentParser` that pieces need."""

    async def parse(self, kind: str, body: bytes) -> Document:
        """Return a document with its text; see `Parser.parse`."""
        ...


async def texts_of(parser: PieceParser, kind: str, pieces: Iterable[str | None]) -> Mapping[str, str]:
    """Return the text of each piece of HTML by the piece; `kind` is `COMMENTS` or `POSTS`.

    Raises:
        ToolError: They need too much time or memory; the engine is unharmed.
    """
    found: dict[str, str] = {"": ""}
    for batch in _batches(dict.fromkeys(piece for piece in pieces if piece)):
        body = json.dumps([piece[: MAX_PIECE_CHARS + 1] for piece in batch]).encode()
        found |= zip(batch, _texts(await parser.parse(kind, body), len(batch)), strict=True)
    return found


def _batches(pieces: Iterable[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    size = 0
    for piece in pieces:
        if batch and size + min(len(piece), MAX_PIECE_CHARS) > BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += min(len(piece), MAX_PIECE_CHARS)
    if batch:
        yield batch


def _texts(document: Document, count: int) -> Sequence[str]:
    """Return the texts in a reply, which is checked: a comment may have captured the process."""
    try:
        texts = TEXTS.validate_json(document.text)
    except ValidationError as error:
        raise ToolError.of("The comments could not be read. Use another source.") from error
    if len(texts) != count:
        raise ToolError.of("The comments could not be read. Use another source.")
    return texts
