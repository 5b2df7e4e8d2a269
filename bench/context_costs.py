"""What a run costs under three ways to keep a conversation: all of it, the policy before, and the engine's policy.

    python bench/context_costs.py [--json]

No model is asked. The conversations are those of `scenarios.py`, and three of agents that read long pages. Tokens are
bytes divided by four. A provider's cache serves what is the same as in the agent's request before; everything else is
written to it. Prices are those of `genai-prices`. What an agent has to read again because it was cleared is not
counted: the scripts ask for nothing twice, so the policy before, which clears most, looks cheaper than it was.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from scenarios import LEAD, JsonObject, Reply, prose, scenario_named, tool_text

from explorer.agents.compaction import ContextPolicy, UsageCost, plan_compaction
from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import BYTES_PER_TOKEN
from explorer.llm.prices import cost_usd, window_tokens
from explorer.schema.events import AgentStarted, Compacted, ToolFinished, ToolStarted, TurnTaken
from explorer.schema.messages import Message, Usage
from explorer.testing import says

MODELS = (
    ("anthropic", "claude-opus-4-5"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5"),
    ("openai", "gpt-5-mini"),
    ("google", "gemini-2.5-pro"),
    ("deepseek", "deepseek-chat"),
)
SCENARIOS = ("research-small", "fan-out-100", "long-run-300")
READINGS = ((12, 40_000), (25, 20_000), (100, 20_000))
"""Turns of an agent that reads a page a turn, and the characters of a page."""
PREFIX_BYTES = 16_000
"""System text and tools."""
MAX_STEPS = 400
HELPER_ANSWER_CHARS = 2_600


@dataclass(frozen=True)
class Conversation:
    """What one agent says and gets, turn by turn."""

    task: str
    turns: Sequence[tuple[Reply, tuple[str, ...]]]
    """Each reply, with the results of its calls."""


def conversations(name: str) -> Iterator[Conversation]:
    """Yield the conversations of all agents of a scenario."""
    if name.startswith("read-"):
        turns, chars = (int(part) for part in name.removeprefix("read-").split("x"))
        calls = [("read_webpage", {"url": f"https://plant.example/{turn}"}) for turn in range(turns)]
        taken = [(Reply(prose(turn, 200), (call,)), (prose(turn, chars),)) for turn, call in enumerate(calls)]
        yield Conversation(prose(0, 600), [*taken, (Reply(prose(1, 800)), ())])
        return
    scenario = scenario_named(name)
    for role, number in ((LEAD, 0), *scenario.agents):
        count = scenario.lead_turns if role == LEAD else scenario.helper_turns
        replies = [scenario.reply(role, number, turn) for turn in range(count)]
        yield Conversation(prose(number, 600), [(reply, tuple(map(_result, reply.calls))) for reply in replies])


def _result(call: tuple[str, JsonObject]) -> str:
    name, arguments = call
    if name == "call_agent":
        return prose(len(str(arguments)), HELPER_ANSWER_CHARS)
    return "Written." if name == "write_file" else tool_text(name, arguments)


@dataclass
class Sent:
    """The requests of one agent, as a provider with a cache counts them."""

    usages: list[Usage] = field(default_factory=list[Usage])
    clearings: int = 0
    _before: Sequence[tuple[object, int]] = ()

    def send(self, parts: list[tuple[object, int]], output_chars: int) -> None:
        """Count one request: its parts, each with an identity and its bytes."""
        same = 0
        for old, new in zip(self._before, parts, strict=False):
            if old[0] is not new[0]:
                break
            same += 1
        total = sum(size for _, size in parts) // BYTES_PER_TOKEN
        read = sum(size for _, size in parts[:same]) // BYTES_PER_TOKEN
        output = output_chars // BYTES_PER_TOKEN
        usage = Usage(input_tokens=total, cache_read_tokens=read, cache_write_tokens=total - read, output_tokens=output)
        self.usages.append(usage)
        self._before = parts


def with_engine(conversation: Conversation, policy: ContextPolicy) -> Sent:
    """Play a conversation with the engine's own state and policy."""
    state, sent = AgentState("one"), Sent()
    state.apply(AgentStarted(agent="one", role="one", task=conversation.task, max_steps=MAX_STEPS))
    for reply, results in conversation.turns:
        while decision := plan_compaction(state, PREFIX_BYTES, policy):
            state.apply(decision)
            sent.clearings += isinstance(decision, Compacted)
        sizes = state.context_size.bytes_of(state.messages)
        sent.send([("prefix", PREFIX_BYTES), *_parts(state.messages, sizes)], len(reply.text) + len(str(reply.calls)))
        turn = says(reply.text, *reply.calls).model_copy(update={"usage": Usage()})
        state.apply(TurnTaken(agent="one", turn=turn, seconds=0.0))
        for index, (name, _) in enumerate(reply.calls):
            key = f"one.t{state.steps}.{index + 1}"
            state.apply(ToolStarted(agent="one", call=key, name=name, effect="pure"))
            state.apply(ToolFinished(agent="one", call=key, name=name, success=True, content=results[index]))
    return sent


def _parts(messages: Sequence[Message], sizes: Sequence[int]) -> list[tuple[object, int]]:
    # A message stays the same object until it is cleared.
    return list(zip(messages, sizes, strict=True))


WORKING_TOKENS = 48_000
CARRIED_CHARS = 400_000
OLD_SHARE, OLD_FREED, OLD_KEPT, OLD_SHORT, OLD_LINE = 0.7, 1 / 4, 40_000, 6_000, 110
"""The policy before: a limit for every model, and a sum of what was sent again."""


def with_old_policy(conversation: Conversation, window: int) -> Sent:
    """Play a conversation with the policy before, by its own figures."""
    sent, carried = Sent(), 0
    parts: list[tuple[object, int]] = [("prefix", PREFIX_BYTES), ("task", len(conversation.task))]
    limit = min(WORKING_TOKENS, int(window * OLD_SHARE))
    for number, (reply, results) in enumerate(conversation.turns):
        kept = _old_kept(parts, limit)
        freed = sum(size - OLD_LINE for name, size in parts[:kept] if _is_long(name, size)) // BYTES_PER_TOKEN
        tokens = sum(size for _, size in parts) // BYTES_PER_TOKEN
        is_due = freed >= limit * OLD_FREED if tokens >= limit else carried >= CARRIED_CHARS
        if is_due and freed >= tokens * OLD_FREED:
            parts = [("c", OLD_LINE) if at < kept and _is_long(*one) else one for at, one in enumerate(parts)]
            carried, sent.clearings = 0, sent.clearings + 1
        said = len(reply.text) + len(str(reply.calls))
        sent.send(list(parts), said)
        carried += sum(size for one, size in parts if _is_long(one, size))
        parts = [*parts, (f"turn {number}", said), (f"result {number}", sum(map(len, results)))]
    return sent


def _is_long(name: object, size: int) -> bool:
    return str(name).startswith("result") and size > 300  # noqa: PLR2004 - as it was


def _old_kept(parts: Sequence[tuple[object, int]], limit: int) -> int:
    size, later = 0, 0
    for later, (_, one) in enumerate(reversed(parts)):
        size += one
        most = min(OLD_SHORT if later >= 4 else OLD_KEPT, limit * BYTES_PER_TOKEN // 4)  # noqa: PLR2004 - as it was
        if later >= 2 and size > most:  # noqa: PLR2004 - as it was
            return len(parts) - later
    return len(parts) - later


def row(name: str, provider: str, model: str) -> JsonObject:
    """Return what a scenario costs with a model under each policy."""
    window = window_tokens(model, provider) or 128_000
    listed = partial(cost_usd, model, provider, override=None)
    price: UsageCost = lambda usage: listed(usage) or 0.0  # noqa: E731 - one line
    plays: dict[str, Callable[[Conversation], Sent]] = {
        "all": lambda one: with_engine(one, ContextPolicy(None)),
        "before": lambda one: with_old_policy(one, window),
        "now": lambda one: with_engine(one, ContextPolicy(window, cost=price)),
    }
    found: JsonObject = {"scenario": name, "model": f"{provider}:{model}", "window": window}
    for policy, play in plays.items():
        sent = [play(one) for one in conversations(name)]
        found[policy] = round(sum(price(usage) for one in sent for usage in one.usages), 4)
        found[f"{policy}_clearings"] = sum(one.clearings for one in sent)
        found[f"{policy}_largest"] = max(usage.input_tokens for one in sent for usage in one.usages)
    return found


def main() -> None:
    """Print a row for each scenario and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    names = (*SCENARIOS, *(f"read-{turns}x{chars}" for turns, chars in READINGS))
    rows = [row(name, *model) for name in names for model in MODELS]
    if parser.parse_args().json:
        print(json.dumps(rows))
        return
    print("| Scenario | Model | Send all | Before | Now | Clearings before | now | Largest request before | now |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for one in rows:
        money = " | ".join(f"${one[policy]:.3f}" for policy in ("all", "before", "now"))
        counts = " | ".join(f"{one[f'{policy}_clearings']}" for policy in ("before", "now"))
        largest = " | ".join(f"{one[f'{policy}_largest']:,}" for policy in ("before", "now"))
        print(f"| {one['scenario']} | {one['model']} | {money} | {counts} | {largest} |")


if __name__ == "__main__":
    main()
