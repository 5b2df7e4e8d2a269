"""The benchmark of judges: a scripted model's opinions become figures, and are asked for once."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from explorer.llm.scripted import ScriptedClient, says
from explorer.reports.verify.check import check
from explorer.schema.messages import Request, Turn
from model_servers import Asked, OpenAIServer, Reply
from reports.verify.shelf import source

SCRIPT = Path(__file__).resolve().parents[3] / "bench" / "judge.py"
TEXTS = {"S1": "The mill ground 4,200 tons in 2024. Ida Brand owns it and keeps bees."}
CASES = {
    "The mill ground 4,200 tons in 2024 [S1].": (True, "CARRIED"),
    "In 2024 it was 4,200 tons [S1].": (True, "NOT_CARRIED"),
    "The mill ground 4,300 tons in 2024 [S1].": (False, "CARRIED"),
    "The mill ground 9,000 tons [S1].": (False, "NOT_CARRIED"),
    "Some people sleep badly [S1].": (False, "NOT_CARRIED"),
    "The mill ground 7,100 tons [S1].": (False, "I cannot say."),
}
"""Sentences, whether they are true, and what the model says of them; the rules have nothing to look up in the fifth."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module."""
    monkeypatch.setattr(sys, "path", [str(SCRIPT.parent), *sys.path])  # where its neighbour is, as for a script
    spec = importlib.util.spec_from_file_location("bench_judge", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, loaded)  # dataclasses look themselves up
    spec.loader.exec_module(loaded)
    return loaded


def _found(bench: ModuleType) -> list[Any]:
    sources = {name: source(name, text) for name, text in TEXTS.items()}
    found: list[Any] = []
    for text, (is_true, _) in CASES.items():
        verification = check(text, sources, TEXTS.get)
        case = sys.modules["citations"].Case(source="S1", kind="made up", is_true=is_true, text=text)
        found.append(bench.Answer(case, verification.claims, bool(verification.faults)))
    return found


def _reply(request: Request) -> Turn:
    asked = str(request.history[0])
    return says(next(word for text, (_, word) in CASES.items() if text in asked))


async def test_what_a_judge_finds_next_to_the_rules(bench: ModuleType) -> None:
    """Found and rejected by each and by both, the agreement where both decide, and what is left open."""
    client = ScriptedClient({"judge": _reply})
    judged = await bench.ask(_found(bench), TEXTS.get, client, bench.Answers("m", None))
    shown = {(line.who, line.what): (line.count, line.n) for line in bench.totals(judged)}
    assert shown == {
        ("rules", "false claims found"): (3, 4),
        ("rules", "true claims rejected"): (0, 2),
        ("judge", "false claims found"): (2, 4),
        ("judge", "true claims rejected"): (1, 2),
        ("rules or judge", "false claims found"): (4, 4),
        ("rules or judge", "true claims rejected"): (1, 2),
        ("rules and judge", "false claims found"): (1, 4),
        ("rules and judge", "true claims rejected"): (0, 2),
        ("both decide", "agree"): (2, 4),
        ("rules", "undecided"): (1, 6),
        ("judge", "undecided"): (1, 6),
    }
    assert bench.agreement_by_chance(judged) == 0.5
    assert "made up" in bench.tables("unseen", judged, is_totals=False)
    assert "made up" not in bench.tables("blind", judged, is_totals=False)


async def test_an_answer_is_asked_for_once(bench: ModuleType, tmp_path: Path) -> None:
    """What the file has is not asked again, but of another model it is; the file has no word of the sentences."""
    path, client = tmp_path / "answers.jsonl", ScriptedClient({"judge": _reply})
    found = _found(bench)
    await bench.ask(found[:2], TEXTS.get, client, bench.Answers("m", path))
    judged = await bench.ask(found, TEXTS.get, client, bench.Answers("m", path))
    assert len(client.requests) == len(CASES)
    assert [str(one.opinions[0]) for one in judged][:3] == ["carried", "not_carried", "carried"]
    assert "mill" not in path.read_text()
    await bench.ask(found, TEXTS.get, client, bench.Answers("other", path))
    assert len(client.requests) == 2 * len(CASES)


@pytest.mark.slow
def test_the_script_asks_a_server(tmp_path: Path) -> None:
    """As a process, with the address in the environment: the first cases of a set, and the totals as a table."""

    def reply(_asked: Asked) -> Reply:
        return Reply(text="NOT_CARRIED")

    path = tmp_path / "answers.jsonl"
    command = [sys.executable, str(SCRIPT), "--judge", "openai:model-a", "--set", "heldout", "--first", "5"]
    with OpenAIServer(reply) as server:
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x", "HOME": str(tmp_path)}
        done = subprocess.run(
            [*command, "--answers", str(path), "--totals"],
            env={**os.environ, **own},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == len(path.read_text().splitlines()) == 5
    assert "heldout" in done.stdout
    assert "undecided             0 of 5" in done.stdout
