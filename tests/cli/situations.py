"""Every way a run can end, as scripts for a model server on loopback and services that answer, refuse or are down."""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from explorer.journal.control import ControlKind, Inbox
from model_servers import Asked, Reply
from team_script import only_run, role_of

NOWHERE = "http://127.0.0.1:9"
QUESTION = "How tall is the bridge?"
NOTES = "The bridge is 412 metres tall, says the builder's log.\nIt was opened on 3 June 1999.\n"
SHORT = "The bridge is 412 metres tall. [S1]\n"
FINISH = Reply(calls=[("finish_exploration", {"summary": "Done."})])
FOUND_NOTHING = Reply(calls=[("finish_exploration", {"summary": "Nothing.", "nothing_found": True})])
Roles = Mapping[str, Sequence[Reply]]

NO_CREDIT = json.dumps({"error": {"message": "This request requires more credits."}})


@dataclass(frozen=True)
class Situation:
    """One way a run goes; the last reply of a role is repeated."""

    name: str
    roles: Roles = field(default_factory=dict[str, Sequence[Reply]])
    words: Sequence[str] = ()
    """Further words of the command."""
    has_file: bool = True
    """The user's file is given, and is source S1."""
    services: str = "down"
    """Hacker News is `down`, `empty` (it answers and has nothing), `half` (its search is empty, its lists are down), or
    `live`: its search finds a story."""
    follow_up: str = ""
    """Asked after a first run with a short, true report."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    is_killed: bool = False
    """Its process is killed while the model answers the first request, and the run is resumed."""
    meanwhile: Callable[[Path], None] | None = None
    """Done while the model answers the first request, given the folder of the command."""


def wrote(content: str) -> Reply:
    """A turn that writes the report."""
    return Reply(calls=[("write_file", {"filepath": "report.md", "content": content, "mode": "overwrite"})])


def reports(content: str, *more: Reply) -> Roles:
    """An orchestrator that writes a report and finishes; asked to correct it, it finishes again."""
    return {"orchestrator": [wrote(content), *more, FINISH, FINISH]}


def search(query: str) -> tuple[str, dict[str, str]]:
    """A lookup."""
    return ("search_hn", {"query": query})


def asks_searcher(*lookups: tuple[str, dict[str, str]]) -> Roles:
    """An orchestrator with one searcher, which makes these lookups at once."""
    ask = Reply(calls=[("call_agent", {"agent_type": "searcher", "task_description": "Look."})])
    return {"orchestrator": [ask], "searcher": [Reply(calls=lookups), Reply(text="That was all.")]}


def then(roles: Roles, *replies: Reply) -> Roles:
    """The same, and what the orchestrator does after it."""
    return {**roles, "orchestrator": [*roles["orchestrator"], *replies]}


def script_of(situation: Situation, folder: Path) -> Callable[[Asked], Reply]:
    """What the model says in a situation: by role and by how many turns it has taken."""
    has_begun = False

    def script(asked: Asked) -> Reply:
        nonlocal has_begun
        taken = sum(message["role"] == "assistant" for message in asked.body["messages"])
        replies = situation.roles[role_of(asked)]
        if situation.meanwhile is not None and not has_begun and role_of(asked) == "orchestrator":
            has_begun = True
            situation.meanwhile(folder)
        return replies[min(taken, len(replies) - 1)]

    return script


def _interrupt(_folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)


def _interrupt_twice(_folder: Path) -> None:
    _interrupt(_folder)
    _interrupt(_folder)


def _terminate(_folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _hang_up(_folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGHUP)


def _stop(folder: Path) -> None:
    run = only_run(folder / "workspace")
    Inbox(run / ".explorer").leave(ControlKind.STOP, "stopped by the user", time.time_ns)


LATE = [wrote(SHORT), FINISH]
PLAN = {
    "understanding": "The bridge's height",
    "questions": [{"question": QUESTION, "sources": ["the notes"], "helper": "searcher", "lookups": 2}],
    "enough_when": "One source says it.",
}
DULL = {
    "questions": [{"id": "q1", "state": "open", "would_settle": "a drawing of the bridge"}],
    "is_interesting": False,
}
SITUATIONS = (
    Situation("A report with its source", reports(f"# The bridge\n\n{SHORT}\nIt was opened on 3 June 1999 [S1].\n")),
    Situation("A short true answer", reports(SHORT)),
    Situation(
        "Some lookups failed, the rest supports the answer",
        then(asks_searcher(search("bridge"), ("get_hn_stories", {})), wrote(SHORT), FINISH),
        services="half",
    ),
    Situation(
        "All lookups failed",
        then(asks_searcher(search("bridge")), wrote("Nothing could be read.\n"), FINISH),
        has_file=False,
    ),
    Situation(
        "All lookups failed, and words instead of a report",
        then(asks_searcher(("get_hn_stories", {})), Reply(text="I could reach nothing.")),
        has_file=False,
    ),
    Situation(
        "The services answered and had nothing",
        then(asks_searcher(search("bridge"), search("tall bridge")), wrote("Nothing was found.\n"), FINISH),
        has_file=False,
        services="empty",
    ),
    Situation(
        "Sources were read, and none is relevant",
        {"orchestrator": [wrote("The notes say nothing of a tower.\n"), FOUND_NOTHING]},
    ),
    Situation("A figure its source does not have, after the correction", reports("The bridge is 512 m tall [S1].\n")),
    Situation("Numbers of the writer's own", reports(f"{SHORT}\nIt was opened in June [1].\n")),
    Situation(
        "A list of references of the writer's own",
        reports(f"{SHORT}\n## References\n\n1. The builder's log, 1999\n2. A friend\n"),
    ),
    Situation("A link that no source has", reports(f"{SHORT}\nMore: [the log](https://log.example/bridge).\n")),
    Situation("Facts and no citation", reports("The bridge is 412 metres tall.\n")),
    Situation("Words and no citation, with sources", reports("The bridge is rather tall.\n")),
    Situation("Nothing was looked up", reports("Hello!\n"), has_file=False),
    Situation(
        "Most figures without a citation",
        reports(f"{SHORT}\nIt has 8 lanes. It cost 90 million euros. It weighs 4,000 tons.\n"),
    ),
    Situation(
        "Ids that no source has",
        {"orchestrator": [wrote("It is 412 metres tall [S1], and old [S9].\n"), Reply(text="The report is done.")]},
    ),
    Situation("Words instead of acting, three times", {"orchestrator": [Reply(text="I would begin with a search.")]}),
    Situation(
        "Empty replies",
        {"orchestrator": [Reply(text="")]},
    ),
    Situation("A refusal, twice", {"orchestrator": [Reply(stop="refusal", explanation="Not this.")]}),
    Situation("Replies cut at their length, again and again", {"orchestrator": [Reply(text="And", stop="max_tokens")]}),
    Situation("Calls kept failing", {"orchestrator": [FINISH]}),
    Situation("Calls of a tool that is not there", {"orchestrator": [Reply(calls=[("look_up", {"words": "bridge"})])]}),
    Situation("One call, again and again", {"orchestrator": [Reply(calls=[("list_files", {})])]}),
    Situation("A stop for an unknown reason", {"orchestrator": [Reply(text="So", stop="a_new_word")]}),
    Situation(
        "The step limit",
        {"orchestrator": [Reply(calls=[("list_files", {})])]},
        ("--max-steps", "2"),
    ),
    Situation(
        "The cost limit",
        {"orchestrator": [Reply(calls=[("list_files", {})])]},
        ("--max-cost", "0.0001"),
        variables={"EXPLORER_PRICE": "5/25"},
    ),
    Situation("The token limit", {"orchestrator": [Reply(calls=[("list_files", {})])]}, ("--max-tokens", "300")),
    Situation(
        "The limit of tool calls, and the report still written",
        {"orchestrator": [Reply(calls=[("list_sources", {"query": str(number)}) for number in range(30)]), *LATE]},
        ("--max-tool-calls", "25"),
    ),
    Situation("The time limit", {"orchestrator": [Reply(text="Soon", stalls="silent")]}, ("--max-time", "2s")),
    Situation("Ctrl-C, and the report still written", {"orchestrator": LATE}, meanwhile=_interrupt),
    Situation("Ctrl-C twice", {"orchestrator": [Reply(text="Soon", stalls="silent")]}, meanwhile=_interrupt_twice),
    Situation("SIGTERM", {"orchestrator": [Reply(text="Soon", stalls="silent")]}, meanwhile=_terminate),
    Situation("SIGHUP", {"orchestrator": [Reply(text="Soon", stalls="silent")]}, meanwhile=_hang_up),
    Situation("Killed, and resumed", reports(f"{SHORT}\nIt was opened on 3 June 1999.\n"), is_killed=True),
    Situation("A judge without a key", words=("--judge", "anthropic:claude-haiku-5-5")),
    Situation(
        "An answer that rests on search hits",
        then(asks_searcher(search("bridge")), wrote("“A bridge of 412 metres” has 77 points [S1].\n"), FINISH),
        has_file=False,
        services="live",
    ),
    Situation("A stop order, and no report", {"orchestrator": [Reply(text="I stop.")]}, meanwhile=_stop),
    Situation("A conversation that does not fit", {"orchestrator": [Reply(error="too_long", status=400)]}),
    Situation("A request the model's server rejects", {"orchestrator": [Reply(error="invalid", status=400)]}),
    Situation(
        "A key that is refused",
        {"orchestrator": [Reply(error="bad_key", status=401)]},
        variables={"OPENAI_API_KEY": "sk-of-nobody"},
    ),
    Situation("A server that needs a key", {"orchestrator": [Reply(error="bad_key", status=401)]}),
    Situation("An account without credit", {"orchestrator": [Reply(status=402, body=NO_CREDIT)]}),
    Situation("A model that is not there", {"orchestrator": [Reply(error="no_model", status=404)]}),
    Situation("A model server that is down", variables={"OPENAI_BASE_URL": f"{NOWHERE}/v1"}),
    Situation("Offline, with no network", words=("--model", "offline"), has_file=False),
    Situation(
        "A follow-up answered as text, from sources",
        {"orchestrator": [*LATE, Reply(text="It was opened on 3 June 1999 [S1].")]},
        follow_up="When was it opened?",
    ),
    Situation(
        "A follow-up answered as text, without a source",
        {"orchestrator": [*LATE, Reply(text="In summer, I believe.")]},
        follow_up="When was it opened?",
    ),
    Situation(
        "A follow-up answered with a wrong figure",
        {"orchestrator": [*LATE, Reply(text="It was opened on 4 June 1999 [S1].")]},
        follow_up="When was it opened?",
    ),
    Situation(
        "A follow-up that revises the report",
        {"orchestrator": [*LATE, wrote(f"Opened on 3 June 1999 [S1]. {SHORT}"), FINISH]},
        follow_up="When was it opened?",
    ),
    Situation(
        "A plan that waits for a decision",
        {"orchestrator": [Reply(calls=[("propose_plan", PLAN)])]},
        words=("--plan",),
    ),
    Situation(
        "Rounds that found nothing of interest",
        {
            "orchestrator": [
                Reply(calls=[("propose_plan", PLAN)]),
                Reply(calls=[("call_agent", {"agent_type": "searcher", "task_description": "x", "question_id": "q1"})]),
                Reply(calls=[("assess_round", DULL)]),
            ],
            "searcher": [Reply(calls=[search("bridge")]), Reply(text="Nothing.")],
        },
        has_file=False,
        services="empty",
        variables={"EXPLORER_MAX_EMPTY_ROUNDS": "1"},
    ),
)
