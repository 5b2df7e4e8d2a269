"""A judge at a run's end: an opinion on the record, within the limits, beside what was looked up."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from command import explorer
from explorer.agents.budget import Account
from explorer.agents.payments import PaidClient
from explorer.cli.commands.ask import SAMPLE_QUESTION
from explorer.journal.run_state import RunState
from explorer.llm.retry import FailedAttempt
from explorer.run.judge import JudgeAccount, LimitedClient
from explorer.run.run import start
from explorer.schema.errors import ModelError
from explorer.schema.events import AnyEvent, CitationsJudged, RequestSent, Status
from explorer.schema.messages import LLMClient, Request, Turn, Usage, UserText
from explorer.schema.model_options import Price
from explorer.schema.settings import Limits, Secrets, Services, Settings
from explorer.testing import says
from model_servers import AnthropicServer, Asked, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply
from team_script import only_run, records_of

JUDGES: dict[str, tuple[type[ModelServer], str]] = {
    "anthropic": (AnthropicServer, "anthropic:claude-sonnet-5-5"),
    "openai": (OpenAIServer, "openai:model-a"),
    "openai-responses": (OpenAIResponsesServer, "openai-responses:model-a"),
}
"""By wire: the server, and what is asked for there."""
PRICES = {"anthropic": Price(input_usd=2, output_usd=10)}
"""Where it is not that of the settings."""
PRICE = Price(input_usd=1, output_usd=2)


def carried(_asked: Asked) -> Reply:
    """The opinion that every sentence is carried."""
    return Reply(text="CARRIED")


async def _judged_demo(
    folder: Path,
    script: Callable[[Asked], Reply] = carried,
    wire: str = "openai",
    question: str = SAMPLE_QUESTION,
    **limits: float,
) -> tuple[Path, int]:
    """The demo with a judge on loopback: its folder, and how often the judge was asked."""
    server_class, judge = JUDGES[wire]
    with server_class(script) as server:
        is_anthropic = wire == "anthropic"
        key = SecretStr("sk-test-0123456789")
        settings = Settings(
            workspace=folder,
            services=Services(anthropic_url=server.url) if is_anthropic else Services(openai_url=server.url),
            secrets=Secrets(anthropic_key=key) if is_anthropic else Secrets(openai_key=key),
            price=PRICE,
            model="offline",
            judge=judge,
            is_sample=True,
            shell="off",
            limits=Limits.model_validate(limits),
        )
        result = await start(question, settings)
        assert result.status is Status.COMPLETE, result.reason
        return result.folder, len(server.requests)


@pytest.mark.slow
async def test_each_cited_sentence_is_judged(tmp_path: Path) -> None:
    """The counts stand in the frontmatter apart from the verdicts, the cost in the run's, the answer at each claim."""
    run, asked = await _judged_demo(tmp_path, question="What do people say about Tern TLS?")
    fields = yaml.safe_load((run / "report.md").read_text().split("---\n")[1])
    marks = fields["citations"]
    assert marks["judged"] == {"model": "model-a", "carried": asked, "not_carried": 0, "unclear": 0}
    assert asked == marks["supported"] + marks["not_found"] + marks["unchecked"] > 7
    assert fields["cost_usd"] > 0
    claims = [json.loads(line) for line in (run / ".explorer" / "claims.jsonl").read_text().splitlines()]
    assert {claim["judged"] for claim in claims if claim["ids"]} == {"carried"}
    run_state = RunState.of_records(records_of(run))
    assert [one.asked for one in run_state.judged] == [asked]


@pytest.mark.slow
async def test_a_limit_ends_the_asking(tmp_path: Path) -> None:
    """The judge takes no more than the run has left: the report is complete, and the record says why it ended."""
    run, asked = await _judged_demo(tmp_path, max_steps=50)
    (judged,) = [record.event for record in records_of(run) if isinstance(record.event, CitationsJudged)]
    assert 0 < judged.asked == asked < 40
    assert "limit on steps" in judged.problem
    run_state = RunState.of_records(records_of(run))
    assert run_state.steps + asked <= 50


@dataclass
class Bill:
    """What the judge's server bills, a token for four bytes in either direction, and whether it says so."""

    reports_usage: bool
    price: Price
    usd: float = 0.0

    def __call__(self, asked: Asked) -> Reply:
        """Answer, and write down what it costs."""
        bill = {"input": len(json.dumps(asked.body, ensure_ascii=False)) // 4, "output": 400}
        self.usd += (bill["input"] * self.price.input_usd + bill["output"] * self.price.output_usd) / 1e6
        return Reply(text="CARRIED", usage=bill if self.reports_usage else {})


@pytest.mark.slow
@pytest.mark.parametrize("reports_usage", [True, False])
@pytest.mark.parametrize("wire", JUDGES)
async def test_a_money_limit_holds_by_the_judges_bill(tmp_path: Path, wire: str, *, reports_usage: bool) -> None:
    """It is asked until the limit has no room; what it costs is booked, and is an estimate where it does not say."""
    bill = Bill(reports_usage, PRICES.get(wire, PRICE))
    most = 0.03 * bill.price.input_usd
    run, asked = await _judged_demo(tmp_path, bill, wire, max_cost_usd=most)
    run_state = RunState.of_records(records_of(run))
    (judged,) = [record.event for record in records_of(run) if isinstance(record.event, CitationsJudged)]
    assert 0 < judged.asked == asked
    assert "limit on cost" in judged.problem
    assert judged.cost_usd == run_state.cost_usd is not None
    assert most / 2 < run_state.known_cost_usd <= most
    assert bill.usd <= most
    if reports_usage:
        assert run_state.known_cost_usd == pytest.approx(bill.usd)
        assert not run_state.estimated
    else:
        assert run_state.estimated.cost_usd == pytest.approx(run_state.known_cost_usd)
    fields = yaml.safe_load((run / "report.md").read_text().split("---\n")[1])
    assert ("estimated" in fields) != reports_usage


class Silent:
    """A vendor that never answers."""

    async def generate(self, request: Request) -> Turn:
        """Wait."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError(request)


class Billing:
    """A vendor that bills a token for each character."""

    async def generate(self, request: Request) -> Turn:
        """Answer, and bill."""
        texts = [message.text for message in request.history if isinstance(message, UserText)]
        usage = Usage(input_tokens=sum(map(len, texts)), output_tokens=2)
        return says("CARRIED", cost_usd=usage.total_tokens / 1e6).model_copy(update={"usage": usage})


async def _asked_once(vendor: LLMClient, text: str, max_cost_usd: float, seconds_left: float | None = None) -> Account:
    """Ask a judge with a dollar for a million tokens; what it cost."""
    account = Account("run", max_cost_usd=max_cost_usd)

    async def record(event: AnyEvent) -> None:
        assert isinstance(event, RequestSent)

    async def fails(_attempt: FailedAttempt) -> None:
        pytest.fail("no attempt fails")

    def cost(input_tokens: int, output_tokens: int) -> float:
        return (input_tokens + output_tokens) / 1e6

    client = LimitedClient(PaidClient(vendor), JudgeAccount(account, record, fails, lambda: seconds_left), cost)
    history = (UserText(text=text),)
    with suppress(ModelError):
        await client.generate(
            Request(agent="judge", role="judge", model="m", system="", tools=(), history=history, max_output_tokens=50)
        )
    return account


async def test_a_judge_that_does_not_answer_ends_with_the_runs_time() -> None:
    """What was asked is booked, and its end is told as that of a limit."""
    account = await _asked_once(Silent(), "Is it so?", 1.0, seconds_left=0.01)
    assert account.used.cost_usd > 0
    assert account.reserved.cost_usd == pytest.approx(0)


async def test_a_question_in_chinese_fits_its_reservation() -> None:
    """A character of Chinese is a token or more, and three bytes."""
    text = "电池的成本下降了。" * 200
    assert (await _asked_once(Billing(), text, 0.001)).used.cost_usd <= 0.001
    assert (await _asked_once(Billing(), text, 1.0)).used.cost_usd > 0.001


@pytest.mark.slow
def test_the_flag_of_a_process_asks_it(tmp_path: Path) -> None:
    """`--judge` at the installed command does the same."""
    with OpenAIServer(lambda _asked: Reply(text="CARRIED")) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test-0123456789", "EXPLORER_PRICE": "1/2"}
        done = explorer("demo", "--judge", "openai:model-a", cwd=tmp_path, settings=settings)
        assert len(server.requests) > 40
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path / "workspace")
    assert RunState.of_records(records_of(run)).judged
