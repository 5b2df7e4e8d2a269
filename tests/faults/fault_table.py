"""Every way in which a model's API fails, as a row: what it answers, how often, and what the run makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from explorer.schema.errors import ModelFault
from faults.stage import Raw, steady
from model_servers import AnthropicServer, Asked, JsonObject, OpenAIResponsesServer, Reply

ALWAYS = 1_000_000
CUT = '{"filepath": "cut/half.md", "content": "The first half, and no'
HOSTILE = "half a pair \ud83d, NUL \0, bell \a, right to left \u202e, tag \U000e0041, line \u2028 end"
BIG_PIECE = "A long reply. " * 8_000
BIG_PIECES = 90
"""Together ten megabytes."""
BIG_ITEMS = 3
"""Each of them in one event of less than what one event may have."""

Answer = Reply | Callable[[Asked], Reply]


@dataclass(frozen=True)
class Row:
    """One fault, which strikes the orchestrator's second request and a helper's second request."""

    name: str
    reply: Answer
    times: int = 1
    """How often at each place; then the model answers as if nothing had been."""
    fault: ModelFault | None = None
    """What the failed attempts are recorded as; None when a turn came."""
    stops: int | None = None
    """The exit code when the run stops; None when it goes on to a report."""
    waits_s: tuple[float, float] = (0.0, 64.0)
    """Between which seconds each wait is."""
    is_partial: bool = False
    """Whether the report is one of a run that ended early."""

    def at(self, asked: Asked) -> Reply:
        """What is answered in place of the right reply."""
        return self.reply(asked) if callable(self.reply) else self.reply


def retried(name: str, reply: Answer, fault: ModelFault, waits_s: tuple[float, float] = (0.0, 1.0)) -> Row:
    """A fault that asking again mends."""
    return Row(name, reply, fault=fault, waits_s=waits_s)


def stopping(name: str, reply: Answer, fault: ModelFault, code: int = 6) -> Row:
    """A fault that nothing mends for now."""
    return Row(name, reply, times=ALWAYS, fault=fault, stops=code)


def _throttled(retry_after: str) -> Reply:
    return Reply(status=429, error="rate_limit", headers={"retry-after": retry_after})


def _as_end(asked: Asked) -> Reply:
    return replace(steady(asked), stop="end")


def _unknown_block(route: str) -> list[JsonObject]:
    if route == AnthropicServer.path:
        block = {"type": "hologram", "voxels": [1, 2]}
        return [
            {"type": "content_block_start", "index": 77, "content_block": block},
            {"type": "content_block_stop", "index": 77},
        ]
    if route == OpenAIResponsesServer.path:
        return [{"type": "response.hologram.added", "output_index": 77}, {"type": "response.hologram.done"}]
    return [{"choices": [{"index": 0, "delta": {"hologram": {"voxels": [1, 2]}}, "finish_reason": None}]}]


def _with_unknown_block(asked: Asked) -> Reply:
    right = steady(asked)
    return Raw(text=right.text, calls=right.calls, inserted=_unknown_block)


def _big_item(index: int) -> list[JsonObject]:
    """A message of the Responses API, whose last event repeats all of it."""
    pieces = BIG_PIECES // BIG_ITEMS // 2
    text: JsonObject = {"type": "output_text", "text": BIG_PIECE * pieces, "annotations": []}
    item: JsonObject = {"type": "message", "id": f"msg_b_{index}", "role": "assistant", "content": [text]}
    delta: JsonObject = {"type": "response.output_text.delta", "output_index": index, "delta": BIG_PIECE}
    done: JsonObject = {"type": "response.output_item.done", "output_index": index}
    return [*[delta] * pieces, {**done, "item": {**item, "status": "completed"}}]


def _long_text(route: str) -> list[JsonObject]:
    if route == AnthropicServer.path:
        begin: JsonObject = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        piece: JsonObject = {"type": "content_block_delta", "index": 0}
        piece["delta"] = {"type": "text_delta", "text": BIG_PIECE}
        return [begin, *[piece] * BIG_PIECES, {"type": "content_block_stop", "index": 0}]
    if route == OpenAIResponsesServer.path:
        return [event for index in range(BIG_ITEMS) for event in _big_item(index)]
    chunk: JsonObject = {"choices": [{"index": 0, "delta": {"content": BIG_PIECE}, "finish_reason": None}]}
    return [chunk] * BIG_PIECES


ONE_CALL: tuple[str, JsonObject] = ("list_files", {})
TABLE = (
    retried("429 with retry-after 1", _throttled("1"), ModelFault.RATE_LIMITED, (1, 1)),
    retried("429 with retry-after 120", _throttled("120"), ModelFault.RATE_LIMITED, (120, 120)),
    stopping("429 with retry-after of a day", _throttled("86400"), ModelFault.RATE_LIMITED),
    stopping("429 until 2099", _throttled("Thu, 01 Jan 2099 00:00:00 GMT"), ModelFault.RATE_LIMITED),
    stopping("429 for ever", _throttled("60"), ModelFault.RATE_LIMITED),
    retried("529", Reply(status=529, error="overloaded"), ModelFault.OVERLOADED),
    retried("500", Reply(status=500, error="overloaded"), ModelFault.OVERLOADED),
    retried("502 with a page", Reply(status=502, body="<html><h1>Bad Gateway</h1></html>"), ModelFault.OVERLOADED),
    stopping("529 for ever", Reply(status=529, error="overloaded"), ModelFault.OVERLOADED),
    Row("400 too long", Reply(status=400, error="too_long"), fault=ModelFault.CONTEXT_EXCEEDED, is_partial=True),
    Row("413", Reply(status=413, error="too_long"), fault=ModelFault.CONTEXT_EXCEEDED, is_partial=True),
    stopping("401", Reply(status=401, error="bad_key"), ModelFault.CREDENTIALS, 4),
    stopping("403", Reply(status=403, error="bad_key"), ModelFault.CREDENTIALS, 4),
    retried("reset before headers", Raw(resets="before"), ModelFault.TRANSPORT),
    retried("reset amid the stream", Raw(text="I look at it now.", resets="amid"), ModelFault.TRANSPORT),
    stopping("reset for ever", Raw(resets="before"), ModelFault.TRANSPORT),
    retried("an end without its event", Reply(text="Half.", cut="terminal"), ModelFault.TRANSPORT),
    retried("a cut chunk", Reply(calls=[("write_file", CUT)], cut="call", is_dropped=True), ModelFault.TRANSPORT),
    retried("an end in a call", Reply(calls=[("write_file", CUT)], cut="call"), ModelFault.TRANSPORT),
    retried("silence", Reply(text="I look", stalls="silent"), ModelFault.STALLED),
    retried("pings only", Reply(text="I look", stalls="pings"), ModelFault.STALLED),
    retried("overloaded amid the stream", Reply(text="I", error="overloaded"), ModelFault.OVERLOADED),
    retried("a broken event", Reply(text="I look at it.", cut="json"), ModelFault.TRANSPORT),
    Row("a call cut by the output limit", Reply(calls=[("write_file", CUT)], stop="max_tokens")),
    retried("one id twice", Reply(calls=[ONE_CALL, ONE_CALL], ids=["c1", "c1"]), ModelFault.TRANSPORT),
    Row("a list as arguments", Reply(calls=[("write_file", '["cut/half.md", "text"]')])),
    Row("NaN as an argument", Reply(calls=[("read_file", '{"filepath": "inputs/notes.md", "start_line": NaN}')])),
    Row("an unknown tool", Reply(calls=[("format_disk", {})])),
    Row("calls under another stop", _as_end),
    Row("nothing", Reply()),
    Row("a refusal", Reply(text="I cannot.", stop="refusal")),
    Row("an unknown stop", Reply(text="The notes speak of May.", stop="sabbatical"), is_partial=True),
    Row("an unknown block", _with_unknown_block),
    Row("hostile text", Reply(text=HOSTILE, calls=[("read_file", {"filepath": HOSTILE})])),
    Row("ten megabytes", Raw(inserted=_long_text)),
)
