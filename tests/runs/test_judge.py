"""`--judge` at a run's end: an opinion on the record, within the limits, beside what was looked up."""

import json
from pathlib import Path

import yaml

from command import explorer
from explorer.events import CitationsJudged
from explorer.fold import Fold
from model_servers import OpenAIServer, Reply
from team_script import only_run, records_of


def _judged_demo(folder: Path, *words: str) -> tuple[int, Path, int]:
    """The demo with a judge on loopback: its exit code, its folder, and how often the judge was asked."""
    with OpenAIServer(lambda _asked: Reply(text="CARRIED")) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-0123456789", "EXPLORER_PRICE": "1/2"}
        done = explorer("demo", "--judge", "openai:model-a", *words, cwd=folder, settings=settings)
        return done.returncode, only_run(folder / "workspace"), len(server.requests)


def test_each_cited_sentence_is_judged(tmp_path: Path) -> None:
    """The counts stand in the frontmatter apart from the verdicts, the cost in the run's, the answer at each claim."""
    code, run, asked = _judged_demo(tmp_path)
    assert code == 0
    fields = yaml.safe_load((run / "report.md").read_text().split("---\n")[1])
    marks = fields["citations"]
    assert marks["judged"] == {"model": "model-a", "carried": asked, "not_carried": 0, "unclear": 0}
    assert asked == marks["supported"] + marks["not_found"] + marks["unchecked"] > 40
    assert fields["cost_usd"] > 0
    claims = [json.loads(line) for line in (run / ".explorer" / "claims.jsonl").read_text().splitlines()]
    assert {claim["judged"] for claim in claims if claim["ids"]} == {"carried"}
    fold = Fold.of(record.event for record in records_of(run))
    assert [one.asked for one in fold.judged] == [asked]


def test_a_limit_ends_the_asking(tmp_path: Path) -> None:
    """The judge takes no more than the run has left: the report is complete, and the record says why it ended."""
    code, run, asked = _judged_demo(tmp_path, "--max-steps", "50")
    assert code == 0
    (judged,) = [record.event for record in records_of(run) if isinstance(record.event, CitationsJudged)]
    assert 0 < judged.asked == asked < 40
    assert "limit on steps" in judged.problem
    fold = Fold.of(record.event for record in records_of(run))
    assert fold.steps + asked <= 50
