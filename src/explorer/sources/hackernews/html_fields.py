"""The HTML in answers of Hacker News' services, replaced by plain text before a value is made of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeVar

from explorer.documents.parsing.document import texts_of
from explorer.documents.parsing.kinds import COMMENTS
from explorer.documents.parsing.parser import DocumentParser
from explorer.sources.http.wire import WireModel

IS_HTML = "HTML"
Html = Annotated[str | None, IS_HTML]
"""A field with HTML that a stranger wrote; plain text in a record that `in_plain_text` returned."""
R = TypeVar("R", bound=WireModel)


async def in_plain_text(parser: DocumentParser, records: Sequence[R]) -> list[R]:
    """Return records with plain text in place of their HTML, which the parser reads in one request.

    Raises:
        ToolError: It takes too much time or memory to read.
    """
    texts = await texts_of(parser, COMMENTS, (one for record in records for one in _pieces(record)))
    return [_replaced(record, texts) for record in records]


def _pieces(record: WireModel) -> Iterator[str]:
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if IS_HTML in field.metadata:
            yield value or ""
        elif isinstance(value, tuple):
            for one in value:  # pyright: ignore[reportUnknownVariableType] - any tuple
                if isinstance(one, WireModel):
                    yield from _pieces(one)


def _replaced(record: R, texts: Mapping[str, str]) -> R:
    changes: dict[str, object] = {}
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if IS_HTML in field.metadata:
            changes[name] = texts[value or ""]
        elif isinstance(value, tuple) and value and isinstance(value[0], WireModel):
            changes[name] = tuple(_replaced(one, texts) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - a tuple of records
    return record.model_copy(update=changes)
