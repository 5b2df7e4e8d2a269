"""A helper whose model fails has failed; its siblings and the run continue, and the orchestrator decides."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.run.run import start
from explorer.schema.events import AgentContinued, AgentFinished, AgentStarted, Status, ToolFinished
from explorer.text.rendering import fenced_lines
from faults.outage_table import SleepingTime
from faults.stage import QUESTION, Raw, WatchfulOpenAI, check_left_behind, events_of, hooks, pairs, part_of, steady
from faults.stage import settings as settings_for
from model_servers import Asked, JsonObject, Reply
from team_script import role_of

FAULTS = {
    "down": (Reply(status=503, body="<html><h1>Service Unavailable</h1></html>"), "overloaded"),
    "forbidden": (Reply(status=403, error="bad_key"), "credentials"),
    "unknown": (Reply(status=404, error="no_model"), "unknown_model"),
    "throttled for a day": (Reply(status=429, error="rate_limit", headers={"retry-after": "86400"}), "rate_limited"),
}
"""What the searchers' model answers, and what its helpers are recorded with."""


class OneModelFails:
    """The steady team, but that the searchers' model fails from their second request on, until it was given up."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.is_back = False
        self.refused: Counter[str] = Counter()
        """By part."""

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or fail."""
        role = role_of(asked)
        if role == "searcher" and asked.results and not self.is_back:
            self.refused[part_of(asked)] += 1
            return self._reply
        return steady(asked) if role != "orchestrator" else self._lead(asked)

    def _lead(self, asked: Asked) -> Reply:
        failed = [
            json.loads("\n".join(fenced_lines(result)))
            for _, _, result in pairs(asked)
            if '"status": "failed"' in result
        ]
        if len(asked.results) == 2 and len(failed) == 2:
            self.is_back = True
            return Reply(calls=[_again(one["agent_id"]) for one in failed])
        return steady(asked)


def _again(agent: str) -> tuple[str, JsonObject]:
    return "call_agent", {"agent_type": "searcher", "agent_id": agent, "task_description": "Continue."}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_failed_model_of_one_role_is_its_helpers_result(name: str, tmp_path: Path) -> None:
    """The helpers end as failed, with why and what else can be done; their memory is kept for a further task."""
    reply, fault = FAULTS[name]
    script = OneModelFails(reply)
    with WatchfulOpenAI(script) as server:
        settings = settings_for(tmp_path, server).model_copy(update={"role_models": {"searcher": "openai:model-b"}})
        given = hooks(watch_s=60)
        assert given.retry_settings is not None
        retry_settings = replace(given.retry_settings, timing=SleepingTime(3).timing)
        async with asyncio.timeout(100):
            result = await start(QUESTION, settings, replace(given, retry_settings=retry_settings))
        check_left_behind(result.folder, server)
    assert result.status is Status.COMPLETE, result.reason
    ended = [event for event in events_of(result.folder, AgentFinished) if isinstance(event, AgentFinished)]
    failed = [event for event in ended if event.status is Status.FAILED]
    assert sorted((event.agent, event.fault) for event in failed) == [("searcher-1", fault), ("searcher-2", fault)]
    results = [event for event in events_of(result.folder, ToolFinished) if isinstance(event, ToolFinished)]
    told = next(event.content for event in results if '"status": "failed"' in event.content)
    output = json.loads("\n".join(fenced_lines(told)))
    assert output["summary"].startswith("Ended early: ")
    assert 'call_agent with agent_id "searcher-' in told
    assert "writer (openai:model-a)" in told
    assert len(events_of(result.folder, AgentStarted)) == 4
    assert len(events_of(result.folder, AgentContinued)) == 2


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_an_outage_of_one_model_leaves_time_for_the_report(tmp_path: Path) -> None:
    """A helper waits for its model until only the report is worked on; then it ends, and the report is written."""
    clock = SleepingTime(3)
    with WatchfulOpenAI(OneModelFails(FAULTS["down"][0])) as server:
        settings = settings_for(tmp_path, server, max_time_s=300)
        settings = settings.model_copy(update={"role_models": {"searcher": "openai:model-b"}})
        given = hooks(watch_s=60)
        assert given.retry_settings is not None
        retry_settings = replace(given.retry_settings, timing=clock.timing)
        result = await start(QUESTION, settings, replace(given, retry_settings=retry_settings, clock=lambda: clock.now))
        check_left_behind(result.folder, server)
    assert (result.status, result.reason) == (Status.PARTIAL, "time limit")
    assert "A good May for the plant" in result.report_text
    ended = [event for event in events_of(result.folder, AgentFinished) if isinstance(event, AgentFinished)]
    helpers = [(event.status, event.reason) for event in ended if event.agent.startswith("searcher")]
    assert helpers == [(Status.PARTIAL, "time limit")] * 2
    assert 255 <= clock.now < 300


class OneHelperFails:
    """The steady team, in which one helper's requests are refused while its siblings wait for their replies."""

    def __init__(self) -> None:
        self.refused = 0

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or refuse the first helper for good."""
        if role_of(asked) == "searcher" and asked.results and part_of(asked) == "1":
            self.refused += 1
            return Raw(status=403, error="bad_key")
        return steady(asked, 4)


@pytest.mark.slow
async def test_siblings_of_a_failed_helper_finish_their_work(tmp_path: Path) -> None:
    """Of four helpers with a model of their own one is refused: the other three end as complete, and the run does."""
    script = OneHelperFails()
    with WatchfulOpenAI(script) as server:
        settings = settings_for(tmp_path, server).model_copy(update={"role_models": {"searcher": "openai:model-b"}})
        result = await start(QUESTION, settings, hooks(watch_s=60))
        check_left_behind(result.folder, server)
    assert result.status is Status.COMPLETE, result.reason
    ended = [event for event in events_of(result.folder, AgentFinished) if isinstance(event, AgentFinished)]
    by_status = Counter(event.status for event in ended if event.agent.startswith("searcher"))
    assert by_status == {Status.COMPLETE: 3, Status.FAILED: 1}
    assert script.refused == 1
