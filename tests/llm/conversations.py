"""One table of conversations that every adapter must hold, over real HTTP, with the real SDK."""

from dataclasses import dataclass

from explorer.schema.errors import ModelFault
from explorer.schema.messages import CallResult, Message, Results, StopKind, ToolSchema, Usage, UserText
from model_servers import JsonObject, Reply

ANTHROPIC = "anthropic"
CHAT = "chat"
RESPONSES = "responses"
BOTH = (ANTHROPIC, CHAT, RESPONSES)
"""Every protocol."""

TOOLS = (
    ToolSchema(
        name="read_file",
        description="Read a file.",
        parameters={"type": "object", "properties": {"filepath": {"type": "string"}}, "required": ["filepath"]},
    ),
    ToolSchema(name="finish", description="Finish.", parameters={"type": "object", "properties": {}}),
)

USAGE = Usage(input_tokens=100, output_tokens=20)
"""What a reply reports unless told otherwise."""

QUESTION = (UserText(text="What is new?"),)


@dataclass(frozen=True)
class Expected:
    """What comes of a conversation's last request: a turn, or a fault."""

    fault: ModelFault | None = None
    says: str = ""
    """Part of the fault's message, or of the stop's detail."""
    text: str = ""
    calls: tuple[tuple[str, JsonObject | None], ...] = ()
    problem: str = ""
    """Part of the last call's problem."""
    stop: StopKind = StopKind.END
    usage: Usage = USAGE
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Conversation:
    """Requests and replies in turn. After every reply but the last, the turn and `then` join the history."""

    name: str
    replies: tuple[Reply, ...]
    expected: Expected
    then: tuple[Message, ...] = ()
    history: tuple[Message, ...] = QUESTION
    wires: tuple[str, ...] = BOTH
    """The protocols on which it can happen."""
    is_fast: bool = False
    """Whether the watch over content is set to a fraction of a second."""


READ_A = ("read_file", {"filepath": "a.md"})
READ_B = ("read_file", {"filepath": "b.md"})
CUT_JSON = '{"filepath": "notes/a-rather-long-na'
ONE_CALL = Expected(calls=(READ_A,), stop=StopKind.TOOL_USE)


def results(wire: str, *contents: str, is_error: bool = False) -> Results:
    """Write results for the calls of the first reply."""
    prefix = "toolu_0_" if wire == ANTHROPIC else "call_0_"
    return Results(
        results=tuple(
            CallResult(id=f"{prefix}{index}", name="read_file", content=content, is_error=is_error)
            for index, content in enumerate(contents)
        )
    )


def broken(name: str, reply: Reply, fault: ModelFault, says: str = "", *wires: str) -> Conversation:
    """Write a conversation of one request that brings no turn."""
    return Conversation(name, (reply,), Expected(fault=fault, says=says), wires=wires or BOTH)


TURNS = (
    Conversation("text", (Reply(text="Nothing is new today."),), Expected(text="Nothing is new today.")),
    Conversation("one_call", (Reply(calls=[READ_A]),), ONE_CALL),
    Conversation(
        "parallel_calls",
        (Reply(calls=[READ_A, READ_B, ("finish", {})]),),
        Expected(calls=(READ_A, READ_B, ("finish", {})), stop=StopKind.TOOL_USE),
    ),
    Conversation(
        "call_without_arguments",
        (Reply(calls=[("finish", "")]),),
        Expected(calls=(("finish", {}),), stop=StopKind.TOOL_USE),
    ),
    Conversation(
        "text_then_call",
        (Reply(text="Let me look.", calls=[READ_A]),),
        Expected(text="Let me look.", calls=(READ_A,), stop=StopKind.TOOL_USE),
    ),
    Conversation(
        "bad_json",
        (Reply(calls=[("read_file", '{"filepath": "a.md" "x"}')]), Reply(text="I see.")),
        Expected(text="I see."),
    ),
    Conversation(
        "bad_json_is_told",
        (Reply(calls=[("read_file", '{"filepath": "a.md" "x"}')]),),
        Expected(
            calls=(("read_file", None),),
            problem="Expecting ',' delimiter at line 1, column 21 (character 20 of 24), near",
            stop=StopKind.TOOL_USE,
        ),
    ),
    Conversation(
        "arguments_not_an_object",
        (Reply(calls=[("read_file", ["a.md"])]),),
        Expected(calls=(("read_file", None),), problem="must be a JSON object", stop=StopKind.TOOL_USE),
    ),
    Conversation(
        "arguments_with_nan",
        (Reply(calls=[("read_file", '{"filepath": NaN}')]),),
        Expected(calls=(("read_file", None),), problem="NaN is not JSON", stop=StopKind.TOOL_USE),
    ),
    Conversation(
        "max_tokens_in_text",
        (Reply(text="Once upon a", stop="max_tokens"),),
        Expected(text="Once upon a", stop=StopKind.MAX_TOKENS),
    ),
    Conversation(
        "max_tokens_in_call",
        (Reply(text="So:", calls=[READ_B, ("read_file", CUT_JSON)], stop="max_tokens"),),
        Expected(
            text="So:",
            calls=(READ_B, ("read_file", None)),
            problem="cut off by the output limit after 36 characters",
            stop=StopKind.MAX_TOKENS,
        ),
    ),
    Conversation(
        "max_tokens_before_arguments",
        (Reply(calls=[("finish", "")], stop="max_tokens"),),
        Expected(calls=(("finish", None),), problem="cut off", stop=StopKind.MAX_TOKENS),
    ),
    Conversation(
        "call_with_an_end_stop",
        (Reply(calls=[READ_A], stop="end"),),
        ONE_CALL,
    ),
    Conversation(
        "tool_stop_without_call",
        (Reply(text="Done.", stop="tool_use"),),
        Expected(text="Done."),
    ),
    Conversation(
        "refusal",
        (Reply(text="I", stop="refusal", explanation="Not that."),),
        Expected(text="I", stop=StopKind.REFUSAL, says="Not that."),
    ),
    Conversation("filtered", (Reply(stop="refusal"),), Expected(stop=StopKind.REFUSAL)),
    Conversation(
        "pause",
        (Reply(text="Searching", stop="pause"), Reply(text="Found.")),
        Expected(text="Found."),
        wires=(ANTHROPIC,),
    ),
    Conversation(
        "context_window_full",
        (Reply(text="So far", stop="context"),),
        Expected(text="So far", stop=StopKind.CONTEXT_EXCEEDED),
        wires=(ANTHROPIC,),
    ),
    Conversation(
        "unknown_stop",
        (Reply(text="Hm.", stop="galaxy_collapsed"),),
        Expected(text="Hm.", stop=StopKind.UNKNOWN, says="galaxy_collapsed"),
    ),
    Conversation("empty_reply", (Reply(), Reply(text="Yes.")), Expected(text="Yes."), then=QUESTION),
    Conversation(
        "unicode",
        (Reply(text="Grüße, 世界 👩‍🚀!", calls=[("read_file", {"filepath": "ä/😀.md"})]), Reply(text="ok")),
        Expected(text="ok"),
    ),
    Conversation(
        "surrogates",
        (Reply(text="12345678\ud83d\ude00 and \ud83d", calls=[("read_file", {"filepath": "x\udc00"})]),),
        Expected(
            text="12345678😀 and \ufffd",
            calls=(("read_file", {"filepath": "x\ufffd"}),),
            stop=StopKind.TOOL_USE,
        ),
    ),
    Conversation(
        "thinking_goes_back_verbatim",
        (Reply(thinking="The file may tell.", calls=[READ_A]), Reply(text="It does.")),
        Expected(text="It does."),
    ),
    Conversation(
        "redacted_thinking_goes_back_verbatim",
        (Reply(redacted="RW5jcnlwdGVk", text="Hm.", calls=[READ_A]), Reply(text="It does.")),
        Expected(text="It does."),
        wires=(ANTHROPIC,),
    ),
    Conversation(
        "results_then_note",
        (Reply(calls=[READ_A, READ_B]), Reply(text="Good.")),
        Expected(text="Good."),
        then=(UserText(text="Half of the budget is used."), UserText(text=" "), UserText(text="Hurry.")),
    ),
    Conversation(
        "cache_in_usage",
        (Reply(text="a", usage={"input": 10, "output": 20, "cache_read": 700, "cache_write": 50, "reasoning": 8}),),
        Expected(
            text="a",
            usage=Usage(
                input_tokens=760,
                output_tokens=20,
                cache_read_tokens=700,
                cache_write_tokens=50,
                reasoning_tokens=8,
            ),
        ),
    ),
    Conversation(
        "usage_missing", (Reply(text="a", usage={}),), Expected(text="a", usage=Usage()), wires=(CHAT, RESPONSES)
    ),
    Conversation(
        "ids_missing",
        (Reply(calls=[READ_A, READ_B], ids=["", ""]),),
        Expected(calls=(READ_A, READ_B), stop=StopKind.TOOL_USE),
    ),
)

OVERLOADED = ModelFault.OVERLOADED
TRANSPORT = ModelFault.TRANSPORT

FAULTS = (
    broken("cut_in_text", Reply(text="Half of a sentence is", cut="text"), TRANSPORT, "broken JSON"),
    broken("cut_in_call", Reply(calls=[READ_A], cut="call"), TRANSPORT, "broken JSON"),
    broken("dropped_in_text", Reply(text="Half of a sentence is", cut="text", is_dropped=True), TRANSPORT),
    broken("dropped_in_call", Reply(calls=[READ_A], cut="call", is_dropped=True), TRANSPORT),
    broken("no_terminal_event", Reply(calls=[READ_A], cut="terminal"), TRANSPORT, "before the reply was complete"),
    broken("truncated_json", Reply(text="Almost", cut="json"), TRANSPORT, "broken JSON"),
    broken("duplicate_ids", Reply(calls=[READ_A, READ_B], ids=["x", "x"]), TRANSPORT, "two calls with the id 'x'"),
    broken("overloaded_in_stream", Reply(text="Well, let me", error="overloaded"), OVERLOADED, "Overloaded."),
    broken("rate_limited_in_stream", Reply(error="rate_limit"), ModelFault.RATE_LIMITED),
    broken("invalid_in_stream", Reply(text="a", error="bad_key"), ModelFault.CREDENTIALS),
    broken("too_long_in_stream", Reply(error="too_long"), ModelFault.CONTEXT_EXCEEDED),
    broken("overloaded_529", Reply(status=529, error="overloaded"), OVERLOADED, "529"),
    broken("overloaded_503", Reply(status=503, body='{"error": "Loading model"}'), OVERLOADED, "Loading model"),
    broken("html_502", Reply(status=502, body="<html><h1>Bad gateway</h1></html>"), OVERLOADED, "Bad gateway"),
    broken("refused_key", Reply(status=401, error="bad_key"), ModelFault.CREDENTIALS, "refused the key"),
    broken("forbidden", Reply(status=403, body="<html>no</html>"), ModelFault.CREDENTIALS),
    broken("too_long", Reply(status=400, error="too_long"), ModelFault.CONTEXT_EXCEEDED, "too long"),
    broken("too_large", Reply(status=413, body="<html>413</html>"), ModelFault.CONTEXT_EXCEEDED),
    broken("unknown_model", Reply(status=404, error="no_model"), ModelFault.UNKNOWN_MODEL, "does not know"),
    broken("wrong_route", Reply(status=404, body="<html>not here</html>"), ModelFault.REJECTED),
    broken("invalid", Reply(status=400, error="invalid"), ModelFault.REJECTED, "tools.0.name"),
    Conversation(
        "rate_limited_429",
        (Reply(status=429, error="rate_limit", headers={"retry-after": "7"}),),
        Expected(fault=ModelFault.RATE_LIMITED, retry_after_s=7),
    ),
    Conversation(
        "pings_only",
        (Reply(stalls="pings"),),
        Expected(fault=ModelFault.STALLED),
        is_fast=True,
    ),
    Conversation(
        "silence_after_text",
        (Reply(text="Well, let me", stalls="silent"),),
        Expected(fault=ModelFault.STALLED),
        is_fast=True,
    ),
)

CONVERSATIONS = TURNS + FAULTS
