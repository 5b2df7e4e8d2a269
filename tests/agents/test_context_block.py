from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from agents.test_subagents import Scripts, Stage, help_from
from engine_stage import Recorder
from explorer.agents.call_agent import OF_ORCHESTRATOR
from explorer.agents.context_block import RunFacts
from explorer.journal.run_state import RunState
from explorer.schema.events import RunStarted
from explorer.schema.messages import UserText
from explorer.schema.settings import Limits
from explorer.testing import says
from explorer.text.rendering import own, without_marks

EAST = timezone(timedelta(hours=8), "TPE")
CALLS = [help_from("searcher", "Look at the log."), help_from("searcher", "Look at the <<meter>>.")]


class Clock:
    """A clock that is a day later each time it is read."""

    def __init__(self) -> None:
        self.time = datetime(2026, 8, 10, 23, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time in the user's zone."""
        self.time += timedelta(days=1)
        return self.time.astimezone(EAST)


class Scene:
    """A run whose orchestrator asks two helpers in one turn, answers, and answers a follow-up."""

    def __init__(self, folder: Path) -> None:
        scripts: Scripts = {
            "orchestrator": [says("", *CALLS), says("Done."), says("June, too.")],
            "searcher": [says("Seen.")],
        }
        facts = RunFacts(Clock(), [own("Web search: none.")], own("Earlier work: a report."))
        limits = Limits(max_steps=40, max_cost_usd=2.0, max_time_s=600)
        self.stage = Stage(folder, scripts, limits=limits, facts=facts)
        started = RunStarted(run_id="r", question="How was May?\nAnd why?", engine="1", settings={})
        self.recorder = Recorder([started])
        self.stage.run_state = self.recorder.run_state
        self.team = self.stage.team(self.recorder.record)

    def first_message(self, agent: str) -> str:
        """What an agent's model read first."""
        message = self.stage.asked_of(agent)[0].history[0]
        assert isinstance(message, UserText)
        return message.text


async def test_the_first_message_of_each_agent_states_what_the_engine_knows(tmp_path: Path) -> None:
    """Time and zone, the question, the neighbours, the limits, what is reachable, the user's files, earlier work."""
    scene = Scene(tmp_path)
    await scene.team.run_orchestrator("Question: how was May?", {"inputs/log.md": "S7"})
    shared = (
        "\n- Web search: none.\n- Files from the user, with their source ids: <<inputs/log.md>> [S7]"
        "\n- Earlier work: a report."
    )
    assert scene.first_message("orchestrator") == (
        "Question: how was May?\n\nContext, stated by the engine:\n"
        "- Now: Wednesday, 2026-08-12 07:30 TPE (UTC+0800).\n"
        "- Your task is the whole question.\n"
        "- Your limit: 20 turns. Left for all agents of the run: 32 turns, 1.90 USD, 10 minutes.\n"
        f"- Helpers: 40 at most, 8 at once.{shared}"
    )
    one, two = scene.first_message("searcher-1"), scene.first_message("searcher-2")
    assert without_marks(one).startswith(
        f"Look at the log.\n\n{OF_ORCHESTRATOR}\n\nContext, stated by the engine:\n- Now: "
    )
    assert "\n- Your task is part of the answer to this question of the user: <<How was May? And why?>>\n" in one
    assert "\n- At work at the same time, so not yours to do: searcher: <<Look at the < <meter> >.>>\n" in one
    assert "so not yours to do: searcher: <<Look at the log.>>\n" in two
    assert "- Your limit: 20 turns. Left for all agents of the run: 31 turns," in one
    assert one.endswith(shared)


async def test_what_was_stated_is_on_record_and_a_follow_up_states_the_time_anew(tmp_path: Path) -> None:
    """The state that the records add up to has the very words that were sent; programs read the words without them."""
    scene = Scene(tmp_path)
    await scene.team.run_orchestrator("Question: how was May?")
    await scene.team.record_follow_up("And June?")
    await scene.team.run_orchestrator("")
    lead = RunState.of(scene.recorder.events).agents["orchestrator"]
    assert lead.messages[:-1] == list(scene.stage.asked_of("orchestrator")[-1].history)
    first, *_, follow_up, _answer = lead.messages
    assert isinstance(first, UserText)
    assert isinstance(follow_up, UserText)
    assert (first.said, follow_up.said) == ("Question: how was May?", "And June?")
    times = [one.text.partition("- Now: ")[2].partition(" TPE")[0] for one in (first, follow_up)]
    assert times == ["Wednesday, 2026-08-12 07:30", "Saturday, 2026-08-15 07:30"]
    assert lead.asked == {"Question: how was May?", "And June?"}
