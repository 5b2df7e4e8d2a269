"""The loopback servers enforce the vendors' rules, so that an adapter which breaks one is refused here, too."""

import json
import urllib.error
import urllib.request

import pytest

from model_servers import SERVERS, ModelServer, OpenAIServer, Reply
from thoroughness import each_slow_but
from vendor_rules import anthropic_violations, compatible, openai_chat
from vendor_rules.anthropic_cache import PromptCache
from vendor_rules.rule import Asked, JsonObject, Rule, RuleSet

CHAT_SETS = (openai_chat.RULES, *compatible.DIALECTS)
SETS = [(server, server.rules) for server in SERVERS] + [(OpenAIServer, rules) for rules in CHAT_SETS]
CASES = [(server, rules, rule) for server, rules in SETS for rule in rules.rules]


def _ask(url: str, asked: Asked) -> tuple[int, str]:
    """Send a request as it is, and return status and body."""
    request = urllib.request.Request(url, json.dumps(asked.body).encode(), asked.headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("server", "rules", "rule"),
    each_slow_but(4, CASES),
    ids=[f"{rules.name}-{rule.id}" for _, rules, rule in CASES],
)
def test_a_server_refuses_a_request_that_breaks_a_rule(server: type[ModelServer], rules: RuleSet, rule: Rule) -> None:
    """Each rule is enforced over HTTP in the vendor's words, and a request that keeps all rules is answered."""
    with server(lambda _asked: Reply(text="Fine."), rules=rules, expects_refusals=True) as running:
        url = running.origin + running.path
        assert _ask(url, rules.valid())[0] == 200
        assert running.refused == []
        status, body = _ask(url, rules.violating(rule))
        expected = rule.check(rules.violating(rule))
        assert expected is not None
        assert (status, [name for name, _ in running.refused]) == (expected.status, [rule.id])
        assert json.loads(body)["error"]["message"] == expected.message


def test_an_entry_too_far_before_a_mark_is_counted_as_missed() -> None:
    """The cache is no rule, but what it would not find is counted: here 30 blocks after the last mark."""
    cache, body = PromptCache(), anthropic_violations.valid().body
    cache.take(body)
    cache.take(body)
    assert cache.missed == 0
    last: list[JsonObject] = body["messages"][-1]["content"]
    last[-1]["cache_control"] = {"type": "ephemeral"}
    cache.take(body)
    del last[-1]["cache_control"]
    last += [{"type": "text", "text": f"Note {number}."} for number in range(30)]
    last[-1]["cache_control"] = {"type": "ephemeral"}
    cache.take(body)
    assert cache.missed == 1
