"""Print which rules of the vendors each adapter keeps: rule by adapter, with how many requests could have broken it.

    uv run python tests/vendor_rules/table.py            the shared conversations, a whole run with troubles, a long run
    uv run python tests/vendor_rules/table.py --quick    the shared conversations alone

Every request is made by the adapter itself and goes over HTTP to a server that enforces the rules. The exit code is 1
when one is broken. "Learned" are refusals after which the adapter asked again as that server wants it. Each rule's
source: `docs/vendor_rules.md`.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

if __name__ == "__main__":
    # Not this folder, which Python puts there: its `anthropic.py` is not the SDK.
    sys.path[0] = str(Path(__file__).parents[1])

from compatible_servers import speaking
from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.errors import ExplorerError
from explorer.schema.events import Status
from llm.conversations import ANTHROPIC, CHAT, RESPONSES, TURNS, Conversation
from llm.long_run import QUESTION, Reader, settings
from llm.test_conversations import stream_reply
from llm.test_prefix import EVERYDAY, RUN, Troubled, whole_run
from model_servers import Asked, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply, Script, ThinkingServer
from vendor_rules import compatible, openai_chat
from vendor_rules.rule import Rule, RuleSet

LONG_RUN_STEPS = 25
LONG_RUN_WORDS = 5_000


@dataclass(frozen=True)
class Adapter:
    """A column of the table: what is asked, and how it is chosen."""

    name: str
    wire: str
    """Of the shared conversations."""
    server: type[ModelServer]
    provider: str
    """Before the colon of a model's name."""
    model: str
    rules: RuleSet | None = None
    """Other rules than the server's own: a compatible server's dialect."""
    learns: bool = False
    """Whether the adapter finds out by a refusal what a server takes, because the servers of its wire differ."""

    @property
    def enforced(self) -> RuleSet:
        """What its server enforces."""
        return self.rules or self.server.rules

    def serve(self, script: Script) -> ModelServer:
        """Make a server that enforces them."""
        if self.rules is not None and self.learns:
            return speaking(self.rules, script, expects_refusals=True)
        return self.server(script, rules=self.rules, expects_refusals=True)


THE_USERS = frozenset({"OL2"})
"""What the user decides, and no adapter: the model's name."""
CHAT_SETS = tuple(
    replace(one, rules=tuple(rule for rule in one.rules if rule.id not in THE_USERS))
    if THE_USERS & {rule.id for rule in one.rules}
    else one
    for one in (openai_chat.RULES, *compatible.DIALECTS)
)

ADAPTERS = (
    Adapter("Anthropic Messages", ANTHROPIC, ThinkingServer, "anthropic", "claude-opus-5-5"),
    Adapter("OpenAI Responses", RESPONSES, OpenAIResponsesServer, "openai-responses", "gpt-6-luna"),
    *(Adapter(one.name, CHAT, OpenAIServer, "openai-chat", "model-a", one, learns=True) for one in CHAT_SETS),
)


@dataclass
class Found:
    """What came of one adapter's requests."""

    adapter: Adapter
    requests: int = 0
    kept: Counter[str] = field(default_factory=Counter[str])
    """By rule, how many requests could have broken it and did not."""
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Rule and words of each refusal that a conversation ended with."""
    learned: Counter[str] = field(default_factory=Counter[str])
    """By rule, refusals from which the adapter learned what this server takes, and asked again in that way."""

    def take(self, server: ModelServer, *, has_failed: bool) -> None:
        """Add what a server counted."""
        self.requests += len(server.requests) + len(server.refused)
        self.kept.update(server.kept)
        if has_failed:
            self.refused += server.refused
        else:
            self.learned.update(name for name, _ in server.refused)

    def cell(self, rule: Rule) -> str:
        """What the table says of a rule."""
        if rule.id not in {one.id for one in self.adapter.enforced.rules}:
            return "-"
        broken = sum(name == rule.id for name, _ in self.refused)
        if broken:
            return f"BROKEN {broken}"
        learned = f", learned {self.learned[rule.id]}" if self.learned[rule.id] else ""
        return f"{self.kept[rule.id]}{learned}" if self.kept[rule.id] or learned else "not applicable"


Play = Callable[[Adapter, Found], None]


def play_conversations(adapter: Adapter, found: Found) -> None:
    """The conversations that every adapter must hold."""
    for conversation in TURNS:
        if adapter.wire in conversation.wires:
            with adapter.serve(_played(conversation)) as server:
                has_failed = asyncio.run(_has_failed(conversation, adapter, server.url))
            found.take(server, has_failed=has_failed)


async def _has_failed(conversation: Conversation, adapter: Adapter, url: str) -> bool:
    try:
        await stream_reply(conversation, adapter.wire, url)
    except ExplorerError:
        return True
    return False


def _played(conversation: Conversation) -> Script:
    replies: Iterator[Reply] = iter(conversation.replies)
    return lambda _asked: next(replies, Reply(text="That is all."))


def play_team(adapter: Adapter, found: Found) -> None:
    """A whole run of all roles, with notes, steering, retries, a life that was cut off, and a follow-up."""
    with TemporaryDirectory() as name:
        script = Troubled(EVERYDAY, Path(name) / "workspace" / RUN)
        with adapter.serve(script.reply) as server:
            asyncio.run(whole_run(server, adapter.provider, Path(name)))
        found.take(server, has_failed=bool(server.refused) and not adapter.learns)


def play_long_run(adapter: Adapter, found: Found) -> None:
    """A long run in which old results are cleared and exchanges summarised."""

    async def is_complete(server: ModelServer, folder: Path) -> bool:
        here = settings(server, folder, LONG_RUN_STEPS, f"{adapter.provider}:{adapter.model}")
        with suppress(ExplorerError):
            return (await start(QUESTION, here, RunHooks(run_id=RUN))).status is Status.COMPLETE
        return False

    with TemporaryDirectory() as name:
        script: Callable[[Asked], Reply] = Reader(LONG_RUN_STEPS, LONG_RUN_WORDS)
        with adapter.serve(script) as server:
            has_failed = not asyncio.run(is_complete(server, Path(name)))
        found.take(server, has_failed=has_failed)


QUICK: Sequence[Play] = (play_conversations,)
ALL: Sequence[Play] = (play_conversations, play_team, play_long_run)


def find(adapters: Sequence[Adapter], plays: Sequence[Play]) -> list[Found]:
    """Have each adapter ask all there is to ask."""
    everything: list[Found] = []
    for adapter in adapters:
        found = Found(adapter)
        for play in plays:
            play(adapter, found)
        everything.append(found)
    return everything


def rules_of(adapters: Sequence[Adapter]) -> list[Rule]:
    """Every rule of any of them, once."""
    return list({one.id: one for adapter in adapters for one in adapter.enforced.rules}.values())


def lines(everything: Sequence[Found]) -> list[str]:
    """Write the table in markdown."""
    names = [found.adapter.name for found in everything]
    counts = [f"{found.requests} requests" for found in everything]
    rows = [["rule", *names, "what it says"], ["---"] * (len(names) + 2), ["", *counts, ""]]
    rules = rules_of([found.adapter for found in everything])
    rows += [[rule.id, *(found.cell(rule) for found in everything), rule.says] for rule in rules]
    return ["| " + " | ".join(row) + " |" for row in rows]


def page(adapters: Sequence[Adapter]) -> str:
    """Write the page of all rules and their sources."""
    text = [
        "# Rules of the vendors",
        "",
        "What the vendors' servers refuse, and the loopback servers of the tests refuse with the same words. Each rule",
        "has its source, and a test that shows it is enforced. `uv run python tests/vendor_rules/table.py` prints how",
        "many requests of each adapter could have broken it. This page is made by the test of that table.",
    ]
    for rules in {adapter.enforced.name: adapter.enforced for adapter in adapters if adapter.enforced.rules}.values():
        text += ["", f"## {rules.name}", "", "| Rule | What it says | Source |", "|---|---|---|"]
        text += [f"| {rule.id} | {_cell(rule.says)} | {_cell(rule.source)} |" for rule in rules.rules]
    return "\n".join(text) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str], adapters: Sequence[Adapter] = ADAPTERS) -> int:
    """Print the table, and what was refused; 1 when anything was."""
    everything = find(adapters, QUICK if "--quick" in arguments else ALL)
    print("\n".join(lines(everything)))  # noqa: T201 - a command's output
    for found in everything:
        for rule, words in sorted(set(found.refused)):
            print(f"{found.adapter.name} broke {rule}: {words}")  # noqa: T201 - a command's output
    return 1 if any(found.refused for found in everything) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
