"""The table of rules by adapter: it counts what was asked, and says which rule an adapter breaks."""

from pathlib import Path

import pytest

from llm.conversations import ANTHROPIC
from model_servers import AnthropicServer
from vendor_rules import table
from vendor_rules.anthropic_violations import valid
from vendor_rules.rule import Asked, Refusal, Rule, RuleSet

EVERYDAY = 3
"""So many adapters are asked every day: one of each API; the slow test asks them all."""
PAGE = Path(__file__).parents[2] / "docs" / "vendor_rules.md"

NO_STREAM = Rule(
    "X1",
    "nothing is streamed",
    "made up",
    lambda asked: Refusal("stream: not here") if asked.body.get("stream") else None,
    lambda asked: asked.body.update(stream=True),
)


def _no_streams() -> Asked:
    asked = valid()
    asked.body["stream"] = False
    return asked


def test_every_adapter_keeps_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """In the shared conversations no request is refused, and rules that none of them could break are told apart."""
    assert table.main(["--quick"], table.ADAPTERS[:EVERYDAY]) == 0
    rows = {row.split(" | ")[0].strip("| "): row for row in capsys.readouterr().out.splitlines()}
    assert "BROKEN" not in "".join(rows.values())
    assert int(rows["A1"].split(" | ")[1]) > 1
    assert rows["A16"].split(" | ")[1] == "not applicable"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_adapter_keeps_every_rule_in_long_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Whole runs with troubles, and long ones whose results are cleared and exchanges summarised."""
    assert table.main([]) == 0
    assert "BROKEN" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_broken_rule_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """An adapter that breaks a rule of its server has its cell, the vendor's words, and an exit code of its own."""
    picky = RuleSet("picky", (NO_STREAM,), _no_streams)
    adapter = table.Adapter("Picky", ANTHROPIC, AnthropicServer, "anthropic", "model-a", picky)
    assert table.main(["--quick"], [adapter]) == 1
    out = capsys.readouterr().out
    assert "| X1 | BROKEN" in out
    assert "Picky broke X1: stream: not here" in out


def test_the_page_has_every_rule_and_its_source(request: pytest.FixtureRequest) -> None:
    """`docs/vendor_rules.md` is made of the rules as they are enforced; `--update-golden` writes it anew."""
    text = table.page(table.ADAPTERS)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
