"""A judge at a run's end: an opinion on the record, within the limits, beside what was looked up."""

import json
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from command import explorer
from explorer.cli.asking import SAMPLE_QUESTION
from explorer.events import CitationsJudged, Status
from explorer.fold import Fold
from explorer.model_options import Price
from explorer.run import start
from explorer.settings import Limits, Secrets, Services, Settings
from model_servers import OpenAIServer, Reply
from team_script import only_run, records_of


async def _judged_demo(folder: Path, **limits: int) -> tuple[Path, int]:
    """The demo with a judge on loopback: its folder, and how often the judge was asked."""
    with OpenAIServer(lambda _asked: Reply(text="CARRIED")) as server:
        settings = Settings(
            workspace=folder,
            services=Services(openai_url=server.url),
            secrets=Secrets(openai_key=SecretStr("sk-test-0123456789")),
            price=Price(input_usd=1, output_usd=2),
            model="offline",
            judge="openai:model-a",
            is_sample=True,
            limits=Limits.model_validate(limits),
        )
        result = await start(SAMPLE_QUESTION, settings)
        assert result.status is Status.COMPLETE, result.reason
        return result.folder, len(server.requests)


async def test_each_cited_sentence_is_judged(tmp_path: Path) -> None:
    """The counts stand in the frontmatter apart from the verdicts, the cost in the run's, the answer at each claim."""
    run, asked = await _judged_demo(tmp_path)
    fields = yaml.safe_load((run / "report.md").read_text().split("---\n")[1])
    marks = fields["citations"]
    assert marks["judged"] == {"model": "model-a", "carried": asked, "not_carried": 0, "unclear": 0}
    assert asked == marks["supported"] + marks["not_found"] + marks["unchecked"] > 40
    assert fields["cost_usd"] > 0
    claims = [json.loads(line) for line in (run / ".explorer" / "claims.jsonl").read_text().splitlines()]
    assert {claim["judged"] for claim in claims if claim["ids"]} == {"carried"}
    fold = Fold.of(record.event for record in records_of(run))
    assert [one.asked for one in fold.judged] == [asked]


@pytest.mark.slow
async def test_a_limit_ends_the_asking(tmp_path: Path) -> None:
    """The judge takes no more than the run has left: the report is complete, and the record says why it ended."""
    run, asked = await _judged_demo(tmp_path, max_steps=50)
    (judged,) = [record.event for record in records_of(run) if isinstance(record.event, CitationsJudged)]
    assert 0 < judged.asked == asked < 40
    assert "limit on steps" in judged.problem
    fold = Fold.of(record.event for record in records_of(run))
    assert fold.steps + asked <= 50


@pytest.mark.slow
def test_the_flag_of_a_process_asks_it(tmp_path: Path) -> None:
    """`--judge` at the installed command does the same."""
    with OpenAIServer(lambda _asked: Reply(text="CARRIED")) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-0123456789", "EXPLORER_PRICE": "1/2"}
        done = explorer("demo", "--judge", "openai:model-a", cwd=tmp_path, settings=settings)
        assert len(server.requests) > 40
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path / "workspace")
    assert Fold.of(record.event for record in records_of(run)).judged
