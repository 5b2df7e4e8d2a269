"""The loopback servers enforce the vendors' rules, so that an adapter which breaks one is refused here, too."""

import json
import urllib.error
import urllib.request

import pytest

from model_servers import SERVERS, ModelServer, Reply
from vendor_rules.rule import Asked, Rule, RuleSet

CASES = [(server, rule) for server in SERVERS for rule in server.rules.rules]


def _ask(url: str, asked: Asked) -> tuple[int, str]:
    """Send a request as it is, and return status and body."""
    request = urllib.request.Request(url, json.dumps(asked.body).encode(), asked.headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(("server", "rule"), CASES, ids=[rule.id for _, rule in CASES])
def test_a_server_refuses_a_request_that_breaks_a_rule(server: type[ModelServer], rule: Rule) -> None:
    """Each rule is enforced over HTTP in the vendor's words, and a request that keeps all rules is answered."""
    rules: RuleSet = server.rules
    with server(lambda _asked: Reply(text="Fine."), expects_refusals=True) as running:
        url = running.origin + running.path
        assert _ask(url, rules.valid())[0] == 200
        assert running.refused == []
        status, body = _ask(url, rules.violating(rule))
        expected = rule.check(rules.violating(rule))
        assert expected is not None
        assert (status, [name for name, _ in running.refused]) == (expected.status, [rule.id])
        assert json.loads(body)["error"]["message"] == expected.message
