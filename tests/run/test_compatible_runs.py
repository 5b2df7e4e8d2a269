"""Whole runs against the strict servers of every dialect, from the command line."""

from pathlib import Path

import pytest

from command import explorer
from compatible_servers import model_of, speaking
from team_script import NOTES, last_json, team
from vendor_rules import compatible
from vendor_rules.rule import RuleSet

CASES = [pytest.param(rules, id=rules.name) for rules in compatible.DIALECTS]


@pytest.mark.slow
@pytest.mark.parametrize("rules", CASES)
def test_a_run_keeps_the_rules_of_a_compatible_server(rules: RuleSet, tmp_path: Path) -> None:
    """Helpers in parallel, files, words beside calls and a report: complete, with no rule broken twice a process."""
    (tmp_path / "notes.md").write_text(NOTES)
    words = ("How was May for the plant?", "--file", "notes.md", "--output-format", "json")
    with speaking(rules, team, expects_refusals=True) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        done = explorer(*words, "--model", f"openai:{model_of(rules)}", cwd=tmp_path, settings=settings)
    assert done.returncode == 0, done.stderr
    assert last_json(done.stdout)["status"] == "complete"
    # Of helpers that ask at once, each may be refused before the first lesson is learnt.
    learnt = {"M5": 4} if rules is compatible.OLD_MISTRAL else {"V2": 4} if rules is compatible.VLLM else {}
    broken = [name for name, _ in server.refused]
    assert all(broken.count(name) <= learnt.get(name, 0) for name in broken), server.refused
    assert server.kept["C1"] > 8
