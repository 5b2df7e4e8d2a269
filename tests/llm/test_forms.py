"""A form of the reply at APIs that take an object only, and how what stands in it is taken out again."""

import json
from dataclasses import replace

import pytest
from pydantic import SecretStr

from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.anthropic.messages import to_rest as anthropic_rest
from explorer.llm.openai.responses import ResponsesClient
from explorer.llm.openai.responses import to_rest as responses_rest
from explorer.llm.options import ClientOptions
from explorer.llm.wire_json import filled_in, object_form
from explorer.schema.errors import ModelError
from explorer.schema.messages import JsonObject, Request, UserText
from model_servers import AnthropicServer, OpenAIResponsesServer, Reply

READ: JsonObject = {
    "type": "object",
    "properties": {"sources": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 9}}},
    "required": ["sources"],
    "additionalProperties": False,
}
REQUEST = Request(
    agent="lean-1",
    role="lean",
    model="m",
    system="",
    tools=(),
    history=(UserText(text="x"),),
    max_output_tokens=90,
    reply_schema=READ,
)


def test_a_form_has_an_object_at_its_root_and_no_limits() -> None:
    """One of several forms stands in a field; limits of lengths, which both APIs refuse, are left out."""
    bare = object_form(READ)
    assert "max" not in json.dumps(bare)
    assert bare["required"] == ["sources"]
    either = object_form({"anyOf": [READ, READ]})
    assert (either["type"], either["properties"]) == ("object", {"reply": {"anyOf": [bare, bare]}})


def test_a_reply_is_taken_out_of_its_field() -> None:
    """A reply in the field and one without it are the same; an action with a field of that name stays."""
    assert filled_in({"reply": {"action": "read"}}) == filled_in({"action": "read"}) == {"action": "read"}
    assert filled_in({"reply": "no"}) == {"reply": "no"}


def test_both_apis_are_sent_the_form() -> None:
    """Responses takes it as the format of its text, Messages in `output_config`, beside the effort."""
    form = object_form(READ)
    shown = {"type": "json_schema", "name": "reply", "strict": True, "schema": form}
    assert responses_rest(REQUEST)["text"] == {"format": shown}
    request = replace(REQUEST, effort="low")
    assert anthropic_rest(request)["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": form},
    }
    plain = replace(REQUEST, reply_schema=None)
    assert "text" not in responses_rest(plain)
    assert "output_config" not in anthropic_rest(plain)


async def test_servers_that_keep_the_vendors_rules_take_it() -> None:
    """Neither refuses the request, and the reply is the form as it was filled in."""
    text = '{"reply": {"sources": ["S1"]}}'
    key = SecretStr("k")
    with OpenAIResponsesServer([Reply(text=text)]) as server:
        async with ResponsesClient(ClientOptions(base_url=server.url, key=key)) as client:
            assert (await client.generate(replace(REQUEST, model="gpt-6-luna"))).text == text
    with AnthropicServer([Reply(text=text)]) as server:
        async with AnthropicClient(ClientOptions(base_url=server.url, key=key)) as client:
            assert (await client.generate(replace(REQUEST, model="claude-opus-5-5", system="s"))).text == text
    assert filled_in(json.loads(text)) == {"sources": ["S1"]}


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
async def test_a_model_that_refuses_forms_is_asked_without(vendor: str) -> None:
    """Once with the form, then without and from then on without; a refusal of that is raised."""
    replies = [Reply(status=400, error="invalid"), Reply(text="a"), Reply(text="b"), Reply(status=400, error="invalid")]
    server_of, client_of, model = {
        "anthropic": (AnthropicServer, AnthropicClient, "claude-opus-5-5"),
        "openai": (OpenAIResponsesServer, ResponsesClient, "gpt-6-luna"),
    }[vendor]
    request = replace(REQUEST, model=model, system="s")
    with server_of(replies) as server:
        async with client_of(ClientOptions(base_url=server.url, key=SecretStr("k"))) as client:
            assert [(await client.generate(request)).text for _ in range(2)] == ["a", "b"]
            with pytest.raises(ModelError):
                await client.generate(request)
    bodies = [json.dumps(body) for body in server.requests]
    assert ["json_schema" in body for body in bodies] == [True, False, False, False]
