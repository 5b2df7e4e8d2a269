"""`--dry-run`: models, limits, prices, and the most a question can cost."""

import json
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.cli.commands.dry_run import most
from explorer.llm.models import ModelRef
from explorer.schema.model_options import Price
from explorer.schema.settings import Limits, Services, Settings
from model_servers import AnthropicServer

OPUS = {"orchestrator": ModelRef("anthropic", "claude-opus-5-5")}


def bound(models: dict[str, ModelRef] | None = None, **limits: float | None) -> tuple[float | None, str]:
    """The most that a question costs under some limits."""
    found = most(models or OPUS, Settings(limits=Limits.model_validate(limits)))
    return found.usd, found.words


def test_a_plan_asks_no_model_and_makes_nothing(typed: Explorer, tmp_path: Path) -> None:
    """With a server that would notice: roles, models, prices, limits, files, cost."""
    (tmp_path / "notes.md").write_text("Notes.\n")
    with AnthropicServer([]) as server:
        words = ("--dry-run", "--file", "notes.md", "--max-steps", "10", "--max-cost", "none", "Is it so?")
        done = typed(*words, ANTHROPIC_BASE_URL=server.url)
    assert done.returncode == 0, done.stderr
    for words in ("Is it so?", "notes.md (7 B)", "10 steps", "anthropic:claude-opus-5-5", "4.00", "20.00", "searcher"):
        assert words in done.stdout
    assert "at most    $53.20 = 10 steps x $5.32" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["notes.md"]


def test_a_plan_is_there_for_programs(here: Explorer) -> None:
    """The same, as one object."""
    words = ("--dry-run", "--max-cost", "0.5", "--effort", "writer=high", "q q")
    shown = json.loads(here(*words, "--output-format", "json", ANTHROPIC_API_KEY="k").stdout)
    assert shown["worst_cost"]["usd"] == 0.5
    assert shown["why"] == "ANTHROPIC_API_KEY is set"
    (lead,) = [role for role in shown["roles"] if role["role"] == "orchestrator"]
    assert lead["usd_per_million"] == {"input_usd": 4.0, "output_usd": 20.0}
    assert shown["limits"]["max_cost_usd"] == 0.5
    assert {role["role"] for role in shown["roles"] if role["effort"] == "high"} == {"writer"}
    page = here(*words, ANTHROPIC_API_KEY="k").stdout
    assert [line.split()[0] for line in page.splitlines() if line.endswith(" high")] == ["writer"]


@pytest.mark.parametrize(
    ("flag", "limit", "words"),
    [
        (
            "--max-cost",
            "0.5",
            "max $0.5000 holds back $0.2500 for the report, which can take $0.6400 with these models",
        ),
        ("--max-cost", "1.27", "--max-cost 1.28 is enough for a whole one"),
        ("--max-tokens", "90000", "max 90,000 tokens holds back 45,000 for the report, which can take 99,500"),
        ("--max-cost", "1.28", ""),
        ("--max-tokens", "199000", ""),
    ],
)
def test_a_limit_too_small_for_a_report_is_named(here: Explorer, flag: str, limit: str, words: str) -> None:
    """With what is held back, what a report can take, and the smallest limit that is enough."""
    page = here("--dry-run", flag, limit, "q q", ANTHROPIC_API_KEY="k").stdout
    assert words in page
    assert ("for the report" in page) == bool(words)


def test_the_smallest_of_the_bounds_counts() -> None:
    """Money, tokens at the dearest rate, or steps with a full window each."""
    assert bound(max_cost_usd=1.0) == (
        1.0,
        "the cost limit itself; the worst-case cost of a request is reserved before it is sent",
    )
    assert bound(max_steps=1, max_cost_usd=100.0)[0] == pytest.approx(5.0 + 0.32)
    usd, words = bound(max_tokens=1_000_000)
    assert usd == pytest.approx(20.0)
    assert "1,000,000 tokens" in words
    assert bound(max_tokens=1_000)[0] == pytest.approx(0.02)


def test_what_nothing_bounds_is_called_unbounded() -> None:
    """And what has no known price is called unknown; nothing is guessed."""
    assert bound(max_steps=None) == (
        None,
        "unbounded: no limit of money, tokens or steps bounds it; set --max-cost",
    )
    usd, words = bound({"writer": ModelRef("openai", "my-model")})
    assert usd is None
    assert "no price is known for openai:my-model" in words
    assert bound({"writer": ModelRef("offline", "offline")}) == (0.0, "no model here costs anything")


def test_a_price_of_ones_own_counts() -> None:
    """Its window is not known, so steps bound nothing, but tokens do."""
    services = Services(openai_url="http://127.0.0.1:9/v1")
    settings = Settings(price=Price(input_usd=1, output_usd=2), services=services, limits=Limits(max_tokens=500_000))
    assert most({"writer": ModelRef("openai", "my-model")}, settings).usd == pytest.approx(1.0)
    unlimited = settings.model_copy(update={"limits": Limits()})
    assert most({"writer": ModelRef("openai", "my-model")}, unlimited).usd is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--model", "openai:my-model", "--max-cost", "1"), 2, "EXPLORER_PRICE"),
        (("--model", "anthropic:claude-opus-5-5"), 4, "ANTHROPIC_API_KEY"),
        (("-c",), 2, "only a new question can be planned"),
    ],
)
def test_a_run_that_could_not_start_cannot_be_planned(
    here: Explorer, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """The same refusal as without `--dry-run`."""
    url = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"} if code == 2 else {}
    done = here("--dry-run", *arguments, "q q", **url)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


@pytest.mark.slow
def test_a_plan_has_the_limits_that_nobody_set(here: Explorer) -> None:
    """Money where prices are known, tokens where they are not, neither on this machine; `none` lifts either."""
    elsewhere = {"OPENAI_BASE_URL": "http://models.example/v1"}
    named = ("--dry-run", "--model", "openai:my-model", "q q")
    priced = here("--dry-run", "q q", ANTHROPIC_API_KEY="k").stdout
    assert "$5.00 (default), no limit of tokens" in priced
    assert "at most    $5.00 = the cost limit itself" in priced
    unpriced = here(*named, **elsewhere).stdout
    assert "no limit of money, 2,000,000 tokens (default)" in unpriced
    assert "at most    2,000,000 tokens; in money not known" in unpriced
    assert "no limit of money, no limit of tokens" in here(*named, OPENAI_BASE_URL="http://127.0.0.1:9/v1").stdout
    assert "no limit of money, no limit of tokens" in here("--dry-run", "--model", "offline", "q q").stdout
    assert "no limit of money" in here("--dry-run", "--max-cost", "none", "q q", ANTHROPIC_API_KEY="k").stdout
    assert "no limit of tokens" in here(*named, EXPLORER_MAX_TOKENS="none", **elsewhere).stdout
    assert "$7.00, no limit of tokens" in here("--dry-run", "--max-cost", "7", "q q", ANTHROPIC_API_KEY="k").stdout


def test_a_model_with_a_price_beside_one_without_has_both_limits(here: Explorer) -> None:
    """Money bounds what is priced, tokens bound everything; a limit that was set is not joined by another."""
    words = ("--dry-run", "--model", "writer=openai:my-model", "q q")
    variables = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://models.example/v1"}
    assert "$5.00 (default), 2,000,000 tokens (default)" in here(*words, **variables).stdout
    limited = here("--max-tokens", "1_000", *words, **variables).stdout
    assert "$5.00 (default), 1,000 tokens, " in limited


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "code", "words"),
    [("anthropic:claude-opus-5-5", 4, "ANTHROPIC_API_KEY"), ("offline", 2, "a judge is a language model")],
)
def test_a_judge_that_cannot_judge_is_refused_before_the_work(
    typed: Explorer, tmp_path: Path, model: str, code: int, words: str
) -> None:
    """With a plan and with a run alike; no folder is made."""
    for command in (("demo",), ("--model", "offline", "q q"), ("--dry-run", "--model", "offline", "q q")):
        done = typed(*command, "--judge", model)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert words in done.stderr
    assert list(tmp_path.iterdir()) == []
