"""Differences between Chat Completions servers, as data: known by host or model name, else learnt from a refusal.

Most servers accept the default body. A row of `KNOWN` has what a known server needs. For other servers, `learn` reads
it in their first refusal, and the request is sent again in the form that the server wants, as are all later ones.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from explorer.llm.faults import Refusal
from explorer.llm.vendors import is_host

REASONING_FIELD = "reasoning_content"
"""The field with a model's reasoning of DeepSeek, Kimi and GLM, in replies and in requests."""
NO_REASONING = " "
"""The reasoning of a turn without any, where a server requires some; DeepSeek refuses an empty text."""
SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Google's signature for a call that no Gemini model made (ai.google.dev/gemini-api/docs/thought-signatures)."""
READ_ON = "I have read the results."
"""The assistant message between a result and a user message, where a server requires one."""

OPTIONAL_FIELDS = ("stream_options", "prompt_cache_key", "response_format")
"""Fields that a request can be sent without."""
ADDED_FIELDS = ("reasoning_content", "reasoning_details", "reasoning", "extra_content", "annotations", "audio")
"""Fields that servers add to the standard's assistant message; some refuse each other's."""
LEAST_OUTPUT_TOKENS = 1_024
"""The least output limit: if less is left, the conversation is too long, not the limit too high."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one model at one address accepts."""

    output_limit: str = "max_tokens"
    """The field for the output limit: the older name, which most servers know, or `max_completion_tokens`."""
    max_output_tokens: int | None = None
    """The highest output limit that is accepted; None: any."""
    left_out: frozenset[str] = frozenset()
    """Fields of a request that are refused."""
    has_cache_key: bool = False
    """Whether requests have a `prompt_cache_key`, which leads them to the cache with their beginning."""
    is_standard_only: bool = False
    """Whether fields of an assistant message that the standard does not have are refused."""
    needs_reasoning: bool = False
    """Whether an assistant message without `reasoning_content` is refused."""
    needs_signatures: bool = False
    """Whether a call without Google's thought signature is refused."""
    needs_short_ids: bool = False
    """Whether ids of calls must be nine letters or digits."""
    needs_reply_after_results: bool = False
    """Whether a user message right after a tool's result is refused."""
    needs_words_or_calls: bool = False
    """Whether an assistant message with both text and calls is refused."""
    needs_text: bool = False
    """Whether the content of an assistant message with calls must be a text, not null."""


@dataclass(frozen=True, slots=True)
class Known:
    """A known difference of a vendor's host, or of its models on any host."""

    hosts: tuple[str, ...]
    """Host names; their subdomains match, too."""
    models: str
    """A pattern of the models' names; empty: only the host matters."""
    changes: Callable[[Dialect], Dialect]


KNOWN = (
    Known(
        ("api.openai.com",),
        r"(^|/)(gpt-[5-9](?!\w*-oss)|o[1-9]\b)",
        lambda one: replace(one, output_limit="max_completion_tokens", is_standard_only=True),
    ),
    Known(("api.openai.com",), "", lambda one: replace(one, has_cache_key=True)),
    Known(
        ("api.mistral.ai",),
        r"mi[sx]tral|ministral|magistral|devstral|codestral",
        lambda one: replace(one, needs_short_ids=True, needs_reply_after_results=True),
    ),
    Known(("api.mistral.ai", "api.groq.com"), "", lambda one: replace(one, is_standard_only=True)),
    Known(
        ("generativelanguage.googleapis.com", "aiplatform.googleapis.com"),
        r"(^|/)gemini-",
        lambda one: replace(one, needs_signatures=True),
    ),
    Known(
        ("api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        r"deepseek-v[4-9]|kimi-k",
        lambda one: replace(one, needs_reasoning=True),
    ),
)


def dialect_of(base_url: str, model: str) -> Dialect:
    """Return the known dialect of a model at an address, before any refusal."""
    dialect = Dialect()
    for known in KNOWN:
        is_named = known.models and re.search(known.models, model.lower())
        if is_named or any(is_host(base_url, host) for host in known.hosts):
            dialect = known.changes(dialect)
    return dialect


def learn(dialect: Dialect, refusal: Refusal) -> Dialect | None:
    """Return the dialect that a server wants by the text of its refusal; None when it shows nothing new."""
    for lesson in _LESSONS:
        learnt = lesson(dialect, refusal.detail)
        if learnt is not None and learnt != dialect:
            return learnt
    return None


def _output_name(dialect: Dialect, refusal_text: str) -> Dialect | None:
    """Change to the other name of the output limit."""
    if dialect.output_limit not in re.findall(r"\w+", refusal_text) or not _REFUSES_FIELD.search(refusal_text):
        return None
    other = "max_tokens" if dialect.output_limit == "max_completion_tokens" else "max_completion_tokens"
    if dialect.output_limit in dialect.left_out:
        return None
    # Refused under both names, it is left out.
    if "max_tokens" in dialect.left_out or "max_completion_tokens" in dialect.left_out:
        return replace(dialect, left_out=dialect.left_out | {dialect.output_limit})
    return replace(dialect, output_limit=other, left_out=dialect.left_out | {dialect.output_limit})


def _unknown_field(dialect: Dialect, refusal_text: str) -> Dialect | None:
    """Leave out a field that the server does not know."""
    if not _REFUSES_FIELD.search(refusal_text):
        return None
    refused = {name for name in OPTIONAL_FIELDS if _is_named(name, refusal_text)}
    if refused:
        return replace(dialect, left_out=dialect.left_out | refused)
    is_added = any(_is_named(name, refusal_text) for name in ADDED_FIELDS)
    return replace(dialect, is_standard_only=True, needs_reasoning=False) if is_added else None


def _output_cap(dialect: Dialect, refusal_text: str) -> Dialect | None:
    """Lower the output limit to the server's maximum, or to half of what is left of its window."""
    found = re.search(_MOST, refusal_text)
    if found is not None:
        most = int(next(group for group in found.groups() if group).replace(",", ""))
        return replace(dialect, max_output_tokens=most) if most >= LEAST_OUTPUT_TOKENS else None
    window, prompt = re.search(_WINDOW, refusal_text), re.search(_PROMPT, refusal_text)
    if window is None or prompt is None:
        return None
    left = int(window[1]) - int(next(group for group in prompt.groups() if group))
    return replace(dialect, max_output_tokens=left // 2) if left // 2 >= LEAST_OUTPUT_TOKENS else None


def _when(pattern: str, **changes: bool) -> Callable[[Dialect, str], Dialect | None]:
    """Return a lesson: a pattern, and what it changes."""
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)

    def lesson(dialect: Dialect, refusal_text: str) -> Dialect | None:
        return replace(dialect, **changes) if compiled.search(refusal_text) else None  # pyright: ignore[reportArgumentType]

    return lesson


def _is_named(field: str, refusal_text: str) -> bool:
    """Return whether a refusal names a field: quoted, or at the end of a path."""
    return bool(re.search(rf"[\"'`.\\]{field}[\"'`\\]|\.{field}\b|supplied: {field}\b", refusal_text))


_REFUSES_FIELD = re.compile(
    r"extra_forbidden|extra inputs|not permitted|unknown (name|parameter|field|argument)|unrecognized|unsupported|"
    r"not supported|unexpected|not allowed|additional propert",
    re.IGNORECASE,
)
_MOST = (
    r"supports at most ([\d,]+)|valid range of max_tokens is \[1, ?([\d,]+)\]|"
    r"max_(?:completion_)?tokens`? must be less than or equal to `?([\d,]+)"
)
_WINDOW = r"maximum context length is (\d+)"
_PROMPT = r"has (\d+) input tokens|at least (\d+) input tokens|\((\d+) in the messages"

_LESSONS: tuple[Callable[[Dialect, str], Dialect | None], ...] = (
    _when(r"reasoning_content.{0,80}(must be passed|missing)|missing.{0,12}reasoning_content", needs_reasoning=True),
    _when(r"missing a .?thought_signature", needs_signatures=True),
    _when(r"tool call id.{0,80}length of 9", needs_short_ids=True),
    _when(r"after role .{0,3}tool|roles must alternate", needs_reply_after_results=True),
    _when(r"either content or tool_calls, but not both", needs_words_or_calls=True),
    _when(r"content type: ?<nil>|content.{0,60}(\bnull\b|\bNone\b|NoneType|must be a string)", needs_text=True),
    _output_name,
    _output_cap,
    _unknown_field,
)
