"""A scripted small model: it fills in the form that a request has, with the oddities that were seen."""

import json
from collections.abc import Callable
from typing import Any

from model_servers import Asked, JsonObject, Reply

Dress = Callable[[str], str]
"""Turns a filled-in form into what the model writes."""


def in_fence(form: str) -> str:
    """A fenced block after some words."""
    return f"Here is the action:\n```json\n{form}\n```"


def after_thinking(form: str) -> str:
    """Thinking aloud, with a draft of the form in it."""
    return f'<think>\nMaybe {{"action": "report"}}? No.\n</think>\n{form}'


def again_and_again(form: str) -> str:
    """The same action until something stops it."""
    return "\n".join([form] * 20)


def forms_of(asked: Asked) -> list[JsonObject]:
    """Return the actions that a request offers."""
    schema: JsonObject = asked.body["response_format"]["json_schema"]["schema"]
    return schema.get("anyOf", [schema])


def offered(asked: Asked) -> dict[str, JsonObject]:
    """Return the fields of each action that a request offers, by its name."""
    return {form["properties"]["action"]["enum"][0]: form["properties"] for form in forms_of(asked)}


def lean_model(*facts: str, answer: str, found: str = "yes", dress: Dress = str) -> Callable[[Asked], Reply]:
    """Return a model that reads what it may read, and then reports these facts and this answer."""

    def reply(asked: Asked) -> Reply:
        actions = offered(asked)
        if "read" in actions:
            return said(dress, action="read", sources=actions["read"]["sources"]["items"]["enum"])
        return said(dress, action="report", facts=list(facts), found=found, answer=answer)

    return reply


def said(dress: Dress = str, **fields: Any) -> Reply:
    """Return a reply that is a form."""
    return Reply(text=dress(json.dumps(fields)))
