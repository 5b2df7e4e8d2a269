"""OpenAI-compatible servers on loopback: each with its vendor's rules, and with the oddities of its replies.

with speaking(compatible.MISTRAL, script) as server:
    ...ask server.url for the model model_of(compatible.MISTRAL)...
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from model_servers import JsonObject, OpenAIServer, Reply, Script
from vendor_rules import compatible
from vendor_rules.rule import RuleSet

Dress = Callable[[JsonObject], JsonObject]
"""Turns one delta of a stream into what the server would send."""

COMMENT = b": OPENROUTER PROCESSING\n\n"


def model_of(rules: RuleSet) -> str:
    """The model that a set is about."""
    return rules.valid().body["model"]


def speaking(rules: RuleSet, script: Script, *, expects_refusals: bool = False, num_ctx: int = 0) -> OpenAIServer:
    """The server of a set.

    Args:
        rules: The set.
        script: What the model says.
        expects_refusals: Whether a broken rule is part of the test.
        num_ctx: The tokens of its window, where it cuts longer prompts without a word as Ollama does; 0: it has room.
    """
    return _CompatibleServer(script, num_ctx, rules=rules, expects_refusals=expects_refusals)


class _CompatibleServer(OpenAIServer):
    """Streams what `OpenAIServer` streams, as the set's server would."""

    def __init__(self, script: Script, num_ctx: int, *, rules: RuleSet, expects_refusals: bool) -> None:
        super().__init__(script, rules=rules, expects_refusals=expects_refusals)
        self._num_ctx = num_ctx

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply as tagged stream events."""
        dress = _OpenRouter() if self.rules is compatible.OPENROUTER else DRESSES.get(self.rules.name, _plain)
        if self._num_ctx:
            counted = counted_by_ollama(self.requests[number - self.first_number], self._num_ctx)
            reply = replace(reply, usage={"input": counted, "output": 20})
        comments = [("start", COMMENT)] if self.rules is compatible.OPENROUTER else []
        return comments + [(tag, _dressed(event, dress)) for tag, event in super().render(reply, number)]


def counted_by_ollama(body: JsonObject, num_ctx: int) -> int:
    """The tokens that Ollama counts: of a prompt that is too long, those of the half window that it keeps, and two.

    Source: ollama/ollama #17427 and #17889, measured there with several models and sizes.
    """
    prompt = len(json.dumps([body["messages"], body.get("tools")])) // 4
    return prompt if prompt <= num_ctx else num_ctx // 2 + 2


def _dressed(event: bytes, dress: Dress) -> bytes:
    data = event.decode().removeprefix("data: ").strip()
    if data == "[DONE]":
        return event
    chunk = json.loads(data)
    for choice in chunk["choices"]:
        choice["delta"] = dress(choice["delta"])
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _plain(delta: JsonObject) -> JsonObject:
    return delta


def _mistral(delta: JsonObject) -> JsonObject:
    """Ids of nine characters, and thoughts as parts of the content."""
    for call in delta.get("tool_calls", []):
        if str(call.get("id", "")).startswith("call_"):
            _, number, index = call["id"].split("_")
            call["id"] = f"m{int(number):04}{int(index):04}"
    thought = delta.pop("reasoning_content", "")
    if thought:
        delta["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
    return delta


def _gemini(delta: JsonObject) -> JsonObject:
    """A signature at the first of parallel calls."""
    for call in delta.get("tool_calls", []):
        if "id" in call and call["index"] == 0:
            call["extra_content"] = {"google": {"thought_signature": f"{compatible.SIGNATURE}{call['id']}"}}
    delta.pop("reasoning_content", None)
    return delta


class _OpenRouter:
    """Reasoning twice, plain and in pieces of one part; the signature comes with the last piece, after all text."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, delta: JsonObject) -> JsonObject:
        piece = delta.pop("reasoning_content", "")
        part: dict[str, Any] = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        if piece:
            self.text += piece
            return {**delta, "reasoning": piece, "reasoning_details": [{**part, "text": piece, "signature": None}]}
        if self.text:
            signed = compatible.details(self.text)[0]["signature"]
            self.text = ""
            return {**delta, "reasoning_details": [{**part, "text": "", "signature": signed}]}
        return delta


def _vllm(delta: JsonObject) -> JsonObject:
    """Reasoning under its newer name."""
    if "reasoning_content" in delta:
        delta["reasoning"] = delta.pop("reasoning_content")
    return delta


DRESSES: Mapping[str, Dress] = {
    compatible.MISTRAL.name: _mistral,
    compatible.OLD_MISTRAL.name: _mistral,
    compatible.GEMINI.name: _gemini,
    compatible.VLLM.name: _vllm,
    compatible.OLLAMA.name: _vllm,
    compatible.GROQ.name: _vllm,
}
