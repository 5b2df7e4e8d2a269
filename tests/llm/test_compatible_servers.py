"""The Chat adapter against every compatible server's rules: known dialects, learnt ones, and replies of all forms."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from loguru import logger
from pydantic import SecretStr

from compatible_servers import model_of, speaking
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.openai.compatible import plain
from explorer.llm.openai.dialect import Dialect, dialect_of
from explorer.llm.options import ClientOptions
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import (
    CallResult,
    LLMClient,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    ToolSchema,
    Turn,
    UserText,
)
from model_servers import OpenAIServer, Reply
from vendor_rules import compatible, openai_chat
from vendor_rules.rule import RuleSet

NESTED = {
    "type": "object",
    "$defs": {"Part": {"type": "object", "title": "Part", "properties": {"kind": {"const": "a"}}}},
    "properties": {
        "part": {"$ref": "#/$defs/Part"},
        "either": {"oneOf": [{"type": "string", "maxLength": 65536}, {"type": ["integer", "null"]}]},
        "level": {"enum": [1, 2], "type": "integer"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "maxItems": 9999},
    },
}
TOOLS = (
    ToolSchema(name="read_file", description="Read.", parameters={"type": "object", "properties": {}}),
    ToolSchema(name="note", description="Note.", parameters=NESTED),
)
FOREIGN = Turn(
    provider="anthropic",
    model="claude-opus-5-5",
    blocks=({"type": "thinking", "thinking": "x", "signature": "y"},),
    text="I read it.",
    calls=(ToolCall(id="toolu_01", name="read_file", arguments={}),),
    stop=StopKind.TOOL_USE,
)
SCRIPT = (
    Reply(thinking="The file may tell.", text="Let me look.", calls=[("read_file", {}), ("read_file", {})]),
    Reply(thinking="And the other one.", calls=[("note", {"level": 1})]),
    Reply(calls=[("read_file", "")]),
    Reply(text="It tells."),
)
"""Words before calls, calls alone, parallel calls, no thinking, no arguments."""


def request_for(model: str, history: Sequence[Message], system: str = "You search.") -> Request:
    return Request(
        agent="searcher-1",
        role="searcher",
        model=model,
        system=system,
        tools=TOOLS,
        history=tuple(history),
        max_output_tokens=8_000,
        run="run-1",
    )


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[LLMClient]:
    async with OpenAIClient(ClientOptions(base_url=url, key=SecretStr("sk-test-1234"))) as client:
        yield client


async def stream_reply(server: OpenAIServer, model: str) -> list[Turn]:
    """A conversation with a foreign turn in it, in which notes follow results."""
    answered = Results(results=(CallResult(id="toolu_01", name="read_file", content="x"),))
    history: list[Message] = [UserText(text="What is new?"), FOREIGN, answered, UserText(text="Go on.")]
    turns: list[Turn] = []
    async with opened(server.url) as client:
        for _ in SCRIPT:
            turn = await client.generate(request_for(model, history))
            turns.append(turn)
            results = [CallResult(id=call.id, name=call.name, content="Nothing.") for call in turn.calls]
            history += [turn, Results(results=tuple(results)), UserText(text="Half of the budget is used.")]
    return turns


def check(turns: list[Turn]) -> None:
    assert [turn.text for turn in turns] == [reply.text for reply in SCRIPT]
    assert [len(turn.calls) for turn in turns] == [len(reply.calls) for reply in SCRIPT]


@pytest.mark.parametrize("rules", compatible.DIALECTS, ids=lambda rules: rules.name)
async def test_what_is_known_of_a_server_is_kept_from_the_first_request(rules: RuleSet) -> None:
    """A conversation with reasoning, notes and a foreign turn keeps all rules; the rest is learnt from one refusal."""
    learnt = {compatible.OLD_MISTRAL.name: {"M4": 1, "M5": 1}, compatible.MISTRAL.name: {"M4": 1}}
    learnt[compatible.GROQ.name] = {"Q1": 1}
    with speaking(rules, lambda asked: SCRIPT[answered(asked.calls)], expects_refusals=True) as server:
        check(await stream_reply(server, model_of(rules)))
    # On loopback only the model's name tells; hosts that refuse unknown fields are known by their names.
    assert Counter(name for name, _ in server.refused) == learnt.get(rules.name, {})
    own = {rule.id for rule in rules.rules} - {"C7"}
    assert own <= server.kept.keys() | {"C7"}


def answered(calls: Sequence[object]) -> int:
    """How many of the script's replies have been given, by the calls so far; the foreign turn had one."""
    return {1: 0, 3: 1, 4: 2, 5: 3}[len(calls)]


NAMELESS = [rules for rules in compatible.DIALECTS if rules != compatible.OLLAMA]


@pytest.mark.parametrize("rules", NAMELESS, ids=lambda rules: rules.name)
async def test_what_nobody_knows_is_learnt_from_refusals(rules: RuleSet) -> None:
    """Behind a gateway with names of its own, each rule that matters is broken once, told of once, and then kept."""
    lines: list[str] = []
    logger.enable("explorer")
    sink = logger.add(lambda message: lines.append(str(message)), level="INFO", format="{message}")
    try:
        with speaking(rules, lambda asked: SCRIPT[answered(asked.calls)], expects_refusals=True) as server:
            check(await stream_reply(server, "house-model"))
    finally:
        logger.remove(sink)
        logger.disable("explorer")
    refused = Counter(name for name, _ in server.refused)
    assert max(refused.values(), default=0) <= 1
    assert len([line for line in lines if "needs requests in another form" in line]) == sum(refused.values())


async def test_the_official_server_is_spoken_to_in_its_own_words() -> None:
    """OpenAI's models want the newer name of the output limit and no fields of others, wherever they are served."""
    with OpenAIServer(
        lambda asked: SCRIPT[answered(asked.calls)], rules=openai_chat.RULES, expects_refusals=False
    ) as server:
        check(await stream_reply(server, openai_chat.MODEL))
    assert all("max_completion_tokens" in body for body in server.requests)


async def test_a_window_that_is_too_small_for_the_limit_lowers_it() -> None:
    """VLLM refuses an output limit that does not fit behind the prompt: half of what is left is asked for instead."""
    request = request_for("house-model", [UserText(text="Go.")])
    with speaking(compatible.VLLM, lambda _asked: Reply(text="Yes."), expects_refusals=True) as server:
        async with opened(server.url) as client:
            large = replace(request, max_output_tokens=16_000)
            assert (await client.generate(large)).text == "Yes."
            assert (await client.generate(large)).text == "Yes."
    assert [name for name, _ in server.refused] == ["V2"]
    assert [body["max_tokens"] for body in server.requests] == [7192, 7192]


async def test_signed_reasoning_is_left_out_behind_a_changed_beginning() -> None:
    """A gateway's signed reasoning goes back whole, until something before it changes; then it is left out."""
    script = [SCRIPT[1], Reply(text="a"), Reply(text="b")]
    with speaking(compatible.OPENROUTER, script) as server:
        async with opened(server.url) as client:
            history: list[Message] = [UserText(text="What is new?")]
            model = model_of(compatible.OPENROUTER)
            turn = await client.generate(request_for(model, history))
            results = Results(results=(CallResult(id=turn.calls[0].id, name="note", content="x"),))
            history += [turn, results]
            await client.generate(request_for(model, history))
            await client.generate(request_for(model, history, system="You search otherwise."))
    same, changed = (body["messages"][2] for body in server.requests[1:])
    assert same["reasoning_details"] == compatible.details("And the other one.")
    assert not {"reasoning_details", "reasoning"} & changed.keys()
    assert changed["tool_calls"] == same["tool_calls"]


async def test_an_id_that_comes_again_is_sent_as_another() -> None:
    """Servers that number the calls of each turn alike would answer the wrong one."""
    history: list[Message] = [UserText(text="What is new?")]
    with OpenAIServer([Reply(calls=[("read_file", {})], ids=["call_0"])] * 2 + [Reply(text="Yes.")]) as server:
        async with opened(server.url) as client:
            for _ in range(2):
                turn = await client.generate(request_for("house-model", history))
                history += [turn, Results(results=(CallResult(id="call_0", name="read_file", content="x"),))]
            await client.generate(request_for("house-model", history))
    sent = server.requests[2]["messages"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ["call_0", "c00003000"]
    assert sent[4]["tool_calls"][0]["id"] == "c00003000"


@pytest.mark.parametrize(
    ("url", "model", "expected"),
    [
        ("http://127.0.0.1:8080/v1", "gpt-oss:20b", Dialect()),
        ("http://127.0.0.1:8080/v1", "o-model", Dialect()),
        ("https://eu.api.openai.com/v1", "gpt-5.2", dialect_of("https://api.openai.com/v1", "gpt-5.2")),
        ("https://notapi.openai.com.evil.example/v1", "m", Dialect()),
        ("https://api.groq.com/openai/v1", "qwen", Dialect(is_standard_only=True)),
        ("https://api.deepseek.com", "x", Dialect(needs_reasoning=True)),
        ("https://openrouter.ai/api/v1", "moonshotai/kimi-k2.6", Dialect(needs_reasoning=True)),
        ("https://europe-west1-aiplatform.googleapis.com/v1", "m", Dialect(needs_signatures=True)),
    ],
)
def test_servers_are_known_by_host_or_by_model(url: str, model: str, expected: Dialect) -> None:
    """A row holds for its vendor's hosts and for its models wherever they run, and for nothing that only looks so."""
    assert dialect_of(url, model) == expected


def test_schemas_are_written_in_common_words() -> None:
    """References are resolved, rare keywords rewritten or left out, bounds that make grammars fail left out."""
    assert plain(NESTED)["properties"] == {
        "part": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["a"]}}},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "level": {"type": "integer"},
        "counts": {"type": "object"},
        "pair": {"type": "array", "items": {"type": "string"}},
    }
    loop = {"$defs": {"Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}}}}
    assert "$ref" not in str(plain({**loop, "type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}}))


def said(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


REGION = said("Country, region, or territory not supported", code="unsupported_country_region_territory")
UNKNOWN_FIELD = json.dumps({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]})
BAD_KEY_OF_GOOGLE = json.dumps([{"error": {"code": 400, "message": "API key not valid."}}])
OTHER_MODEL = (
    "You exceeded your current quota. * Quota exceeded for metric: free_tier_requests, limit: 0\nPlease retry in 20s."
)
REJECTED, UNKNOWN_MODEL = ModelFault.REJECTED, ModelFault.UNKNOWN_MODEL
UNSUPPORTED, CREDENTIALS = ModelFault.UNSUPPORTED, ModelFault.CREDENTIALS
REFUSED = (
    (500, said("tools param requires --jinja flag"), UNSUPPORTED, "llama-server --jinja"),
    (400, said('"auto" tool choice requires --enable-auto-tool-choice'), UNSUPPORTED, "--tool-call-parser"),
    (404, said('model "x" not found, try pulling it first'), UNKNOWN_MODEL, "ollama pull"),
    (400, said("llama3 does not support tools"), UNSUPPORTED, "ollama show"),
    (429, said("You exceeded your current quota", code="insufficient_quota"), CREDENTIALS, "add credit"),
    (402, said("This request requires more credits"), CREDENTIALS, "add credit"),
    (402, said("No."), CREDENTIALS, "add credit"),
    (429, said(OTHER_MODEL), CREDENTIALS, "another provider"),
    (403, REGION, UNSUPPORTED, "another provider"),
    (404, said("Your organization must be verified to stream this model."), UNSUPPORTED, "organization/general"),
    (404, said("No endpoints found for x"), UNKNOWN_MODEL, "explorer models"),
    (422, UNKNOWN_FIELD, REJECTED, ""),
    (400, BAD_KEY_OF_GOOGLE, REJECTED, ""),
)


@pytest.mark.parametrize(("status", "body", "fault", "hint"), REFUSED)
async def test_a_refusal_names_the_command_that_fixes_it(status: int, body: str, fault: ModelFault, hint: str) -> None:
    """What vendors and local servers refuse for reasons of their own is final at once and carries its fix."""
    with OpenAIServer([Reply(status=status, body=body)]) as server:
        async with opened(server.url) as client:
            with pytest.raises(ModelError) as caught:
                await client.generate(request_for("house-model", [UserText(text="Go.")]))
    assert caught.value.fault is fault
    assert hint in caught.value.hint
    assert not caught.value.is_retryable
    if not hint:
        assert any(words in str(caught.value) for words in ("body.seed: Extra inputs", "API key not valid."))
