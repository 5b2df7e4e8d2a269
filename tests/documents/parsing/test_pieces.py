"""The HTML of comments and posts: read by the process that parses, all pieces of a thread in one request."""

import json
from collections.abc import Callable

import pytest

from explorer.documents.parsing.document import MAX_PIECE_CHARS, Document
from explorer.documents.parsing.kinds import COMMENTS, POSTS
from explorer.documents.parsing.parser import BATCH_CHARS, Parser, ParserLimits, texts_of
from explorer.documents.parsing.reading import read_document
from explorer.schema.errors import ToolError


class Counting:
    """Parses here, and keeps how many pieces each request had."""

    def __init__(self, answer: Callable[[str, bytes], Document] = read_document) -> None:
        self.asked: list[int] = []
        self._answer = answer

    async def prepare(self, kind: str) -> None:
        """Nothing has to be loaded."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:  # noqa: ARG002 - pieces have none
        """A document."""
        self.asked.append(len(json.loads(body)))
        return self._answer(kind, body)


async def test_a_thread_is_one_request() -> None:
    """Five hundred comments take one request; what is empty or there twice is not asked for."""
    parser = Counting()
    pieces = [f"<p>Comment <i>{number}</i> &amp; more" for number in range(500)]
    texts = await texts_of(parser, COMMENTS, [*pieces, "", None, pieces[0]])
    assert parser.asked == [500]
    assert [texts[piece] for piece in pieces] == [f"Comment *{number}* & more" for number in range(500)]
    assert texts[""] == ""
    await texts_of(parser, COMMENTS, ["", None])
    assert parser.asked == [500]


async def test_large_threads_take_a_few_requests() -> None:
    """No request has more than its limit, and a piece that is longer than its own limit is cut."""
    parser = Counting()
    long = "x" * (4 * MAX_PIECE_CHARS)
    texts = await texts_of(parser, COMMENTS, [long, *(f"{number} {'y' * 999}" for number in range(1_000))])
    assert texts[long] == "x" * MAX_PIECE_CHARS + " [...]"
    assert sum(parser.asked) == 1_001
    assert len(parser.asked) == -(-(MAX_PIECE_CHARS + 1_000 * 1_003) // BATCH_CHARS)


@pytest.mark.parametrize("text", ["[]", '["a", "b"]', '"a"', "[1]", '{"a": 1}', "<p>", ""])
async def test_a_reply_that_is_none_is_refused(text: str) -> None:
    """A process that a comment captured can give no other number of texts, and nothing but texts."""
    parser = Counting(lambda _kind, _body: Document("", text))
    with pytest.raises(ToolError, match="comments could not be read"):
        await texts_of(parser, COMMENTS, ["<p>one"])


@pytest.mark.slow
async def test_the_process_that_parses_reads_them() -> None:
    """Both kinds are read by confined processes, also characters that no file can have."""
    async with Parser() as parser:
        html = "<h1>One</h1><ul><li>two \U0001f600<li><a href='https://a.example/'>three</a></ul>"
        assert (await texts_of(parser, COMMENTS, [html]))[html] == "Onetwo \U0001f600three (https://a.example/)"
        assert (await texts_of(parser, POSTS, [html]))[html].startswith("# One\n\n- two \U0001f600\n")
        odd = "a\x00b\ud800c"
        assert (await texts_of(parser, COMMENTS, [odd]))[odd] == "ab?c"


@pytest.mark.slow
async def test_a_comment_that_takes_too_long_costs_its_thread_only() -> None:
    """A process that exceeds its time is ended; the next thread is read by another one."""
    async with Parser(ParserLimits(wall_s=0.001)) as parser:
        with pytest.raises(ToolError, match="took too long"):
            await texts_of(parser, COMMENTS, ["<b> " * 50_000])
    async with Parser() as parser:
        assert await texts_of(parser, COMMENTS, ["<b>one"]) == {"": "", "<b>one": "one"}
