"""A small money limit still pays for the report, with the models that the vendors' keys bring, over real HTTP."""

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.journal.listing import read_records
from explorer.llm.anthropic import vendor as anthropic
from explorer.llm.openai import vendor as openai
from explorer.llm.prices import cost_usd
from explorer.llm.vendors import OPENAI_RESPONSES
from explorer.run.run import start
from explorer.schema.events import AgentFinished, JournalRecord, NoteAdded, RequestSent
from explorer.schema.messages import Usage
from explorer.schema.model_options import Tier
from explorer.schema.settings import Limits, Price, Secrets, Services, Settings
from model_servers import Asked, ModelServer, OpenAIResponsesServer, Reply, ThinkingServer
from team_script import role_of

MAX_USD = 0.50
"""As in the README."""
CHARS_PER_TOKEN = 4
DEAREST_OPENAI = Price(input_usd=2.5, output_usd=10)
"""What the strongest of OpenAI's default models costs when all input is written to its cache."""
TIERS = {"orchestrator": Tier.STRONG, "searcher": Tier.FAST, "analyzer": Tier.BALANCED, "writer": Tier.STRONG}
NOTES = "".join(f"Panel {number} gave {100 + number} kWh in May, says the plant's log.\n" for number in range(1, 301))
REPORT_TOKENS = 3_000
REASONING_TOKENS = 400


@dataclass
class Biller:
    """A team that explores for as long as it may, and the bill for it, without any cached input."""

    vendor: str
    price: Price | None
    usd: float = 0.0
    cut: int = 0
    """Replies of the writer that were longer than they might be."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, asked: Asked) -> Reply:
        """Answer, no longer than allowed, and write down what it costs."""
        most = asked.body.get("max_tokens") or asked.body["max_output_tokens"]
        reply = _team(asked)
        stated = reply.text + "".join(json.dumps(arguments) for _, arguments in reply.calls)
        output = len(stated) // CHARS_PER_TOKEN + REASONING_TOKENS
        if output > most:
            reply, output = Reply(text="I", stop="max_tokens"), most
        inward = len(json.dumps(asked.body, ensure_ascii=False)) // CHARS_PER_TOKEN
        usage = Usage(input_tokens=inward, cache_write_tokens=inward, output_tokens=output)
        with self._lock:
            self.usd += cost_usd(asked.body["model"], self.vendor, usage, self.price) or 0.0
            self.cut += reply.stop == "max_tokens" and role_of(asked) == "writer"
        return replace(reply, usage={"cache_write": inward, "output": output})


def _team(asked: Asked) -> Reply:
    return {"orchestrator": _lead, "searcher": _search, "writer": _write}[role_of(asked)](asked)


def _lead(asked: Asked) -> Reply:
    helped = [arguments["agent_type"] for name, arguments in asked.calls if name == "call_agent"]
    if "writer" in helped:
        return Reply(calls=[("finish_exploration", {"summary": "May was good."})])
    if any("Stop exploring now" in words for words in asked.said):
        return Reply(calls=[_call("writer", "Write it.")])
    # Each round brings the orchestrator more to read, too.
    return Reply(calls=[_call("searcher", f"Look again, round {len(helped)}: {'every panel counts. ' * 200}")] * 2)


def _call(role: str, task: str) -> tuple[str, dict[str, str]]:
    return "call_agent", {"agent_type": role, "task_description": task}


def _search(asked: Asked) -> Reply:
    if len(asked.calls) < 3:
        return Reply(calls=[("read_file", {"filepath": "inputs/notes.md", "start_line": 1 + 90 * len(asked.calls)})])
    return Reply(text="The panels gave between 101 and 400 kWh each [S1]. " * 20)


def _write(asked: Asked) -> Reply:
    if not asked.calls:
        return Reply(calls=[("read_file", {"filepath": "inputs/notes.md"})])
    if any("Wrote <<report.md>>" in result for result in asked.results):
        return Reply(text="The report names the panels [S1].")
    shown = [int(found.group(1).replace(",", "")) for words in asked.said for found in _TOLD.finditer(words)]
    return Reply(calls=[("write_file", {"filepath": "report.md", "content": _report(shown), "mode": "overwrite"})])


_TOLD = re.compile(r"a reply of yours may have ([\d,]+) tokens")


def _report(shown: Sequence[int]) -> str:
    """As long as it should be, or well within what the writer was told last."""
    tokens = min([REPORT_TOKENS, *((most - REASONING_TOKENS) * 2 // 3 for most in shown)])
    why = "Why that is so nobody knows, and nobody has asked. " * 7
    lines = [f"Panel {number} gave {100 + number} kWh in May [S1]. {why}\n\n" for number in range(1, 301)]
    return ("# A good May for the plant\n\n" + "".join(lines))[: tokens * CHARS_PER_TOKEN] + "\n\nThe end [S1].\n"


def _settings(folder: Path, server: ModelServer, max_usd: float) -> Settings:
    notes = folder / "notes.md"
    notes.write_text(NOTES)
    is_anthropic = isinstance(server, ThinkingServer)
    services = Services(anthropic_url=server.url) if is_anthropic else Services(openai_url=server.url)
    secrets = Secrets(anthropic_key=SecretStr("sk-a")) if is_anthropic else Secrets(openai_key=SecretStr("sk-o"))
    provider, vendor = ("anthropic", anthropic) if is_anthropic else (OPENAI_RESPONSES, openai)
    return Settings(
        workspace=folder / "workspace",
        services=services,
        secrets=secrets,
        role_models={role: f"{provider}:{vendor.TIER_MODELS[tier]}" for role, tier in TIERS.items()},
        price=None if is_anthropic else DEAREST_OPENAI,
        limits=Limits(max_cost_usd=max_usd, max_parallel_agents=2),
        shell="off",
        files=(notes,),
    )


async def _run(
    folder: Path, server_class: type[ModelServer], max_usd: float
) -> tuple[Biller, list[JournalRecord], str]:
    is_anthropic = server_class is ThinkingServer
    biller = Biller("anthropic" if is_anthropic else "elsewhere", None if is_anthropic else DEAREST_OPENAI)
    with server_class(biller) as server:
        result = await start("How was May for the plant?", _settings(folder, server, max_usd))
    records = list(read_records(result.folder))
    assert result.cost_usd is not None
    assert biller.usd <= result.cost_usd + 1e-6 <= max_usd
    return biller, records, result.report_text


@pytest.mark.slow
@pytest.mark.parametrize("server_class", [ThinkingServer, OpenAIResponsesServer])
async def test_the_limit_of_the_readme_pays_for_a_report(tmp_path: Path, server_class: type[ModelServer]) -> None:
    """Half a dollar is explored with, the writer writes its report, and neither bill nor books pass the limit."""
    biller, records, report = await _run(tmp_path, server_class, MAX_USD)
    ends = {record.event.agent: record.event for record in records if isinstance(record.event, AgentFinished)}
    assert "# A good May for the plant" in report
    assert "The end [1]." in report
    assert ends["writer-1"].status == "complete", ends
    assert "searcher-2" in ends
    assert biller.usd > MAX_USD / 4
    assert biller.cut == 0


@pytest.mark.slow
async def test_a_writer_is_told_how_short_its_replies_are(tmp_path: Path) -> None:
    """With half of that its replies are shortened instead of refused, and it is told the length before it writes."""
    biller, records, report = await _run(tmp_path, ThinkingServer, 0.25)
    sent = [record.event for record in records if isinstance(record.event, RequestSent)]
    lengths = [one.output_tokens for one in sent if one.agent == "writer-1"]
    notes = [record.event for record in records if isinstance(record.event, NoteAdded)]
    assert any(note.agent == "writer-1" and note.reason.startswith("short_replies_") for note in notes)
    assert lengths[-1] < REPORT_TOKENS + REASONING_TOKENS < lengths[0]
    assert "The end [1]." in report
    assert biller.cut == 0
