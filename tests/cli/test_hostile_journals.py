"""The commands that show runs, over journals in which a stranger wrote anything at all: each ends as documented."""

import json
import random
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from command import explorer_here
from explorer.journal.codec import GENESIS
from explorer.journal.run_state import RunState
from explorer.lean.progress import LeanProgress
from explorer.schema.events import AgentStarted, Lookup, ToolFinished, TurnTaken
from explorer.schema.limits import Limits
from explorer.schema.messages import CallResult, JsonObject, Results
from explorer.schema.reasons import EndCause
from explorer.testing import says
from explorer.tools.finish import GIVE_ANSWER, answer_of
from explorer.workspace.access import journal_path
from thoroughness import examples

OLD = Path(__file__).parents[1] / "golden" / "journal_v1.jsonl"
RUN = "20260810-120000-hostile-0001"
DISPLAYS = (
    ("runs",),
    ("show", RUN),
    ("show", RUN, "--timeline"),
    ("show", RUN, "--files"),
    ("show", RUN, "--costs"),
    ("show", RUN, "--output-format", "json"),
    ("verify", RUN, "--all"),
    ("verify", RUN, "--output-format", "json"),
    ("watch", RUN),
    ("doctor", RUN),
    ("report", RUN),
    ("runs", "export", RUN, "--to", "out"),
)
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 124, 130, 143}
BUG = "this is a bug"
HOSTILE: tuple[object, ...] = (
    *(None, True, -1, 0, 10**30, 10**400, -(10**400), 10**4_299, 1e308, -1e308, float("nan"), float("inf")),
    *("", "nan", "-1", "\x1b[2J\x07", "\ud800", "../../etc/passwd", "/etc/passwd", "report.md", "a" * 5_000, "S1"),
    *("orchestrator", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999-23:59", "http://[::1", "http://a@b:99999/"),
    *map(json.loads, ("[]", "[[]]", "{}", '{"": null}', '{"max_steps": "many"}', '{"max_steps": -5}', '["x"]')),
)
"""Values of every kind that a field may not expect."""
NUMBERS = (None, True, -1, 0, 0.5, 10**15, 1e308, -1e308)
"""Limits that a journal can claim."""
HALF = 0.5
MOST = examples(100)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hostile_journal_ends_no_command_in_an_unforeseen_way(tmp_path: Path) -> None:
    """Whatever a journal claims whose checksums fit, a command that shows it ends with a documented code."""
    run = tmp_path / "workspace" / RUN
    (run / ".explorer").mkdir(parents=True)
    good = 0
    for number in range(MOST):
        with_files(run, has_report=number % 2 == 0)
        changed, what = hostile(random.Random(number))  # noqa: S311 - journals, not keys
        journal_path(run).write_bytes(sealed(changed))
        for words in DISPLAYS:
            done = explorer_here(*words, cwd=tmp_path, settings={"EXPLORER_WORKSPACE": "workspace"})
            assert done.returncode in DOCUMENTED, (number, words, what)
            assert BUG not in done.stderr, (number, words, what)
            assert "Traceback" not in done.stderr, (number, words, what)
            good += words == ("show", RUN) and done.returncode == 0
    assert good > MOST // 10, "many of the journals can be read"


def test_data_of_results_that_nobody_foresees_is_passed_over() -> None:
    """What a stranger's journal, or a tool of somebody's own, has where our tools have lists and numbers."""
    progress, turn = LeanProgress(), says("", (GIVE_ANSWER, {}))
    begun = [AgentStarted(agent="a", role="a", task="Look.", max_steps=9), TurnTaken(agent="a", turn=turn, seconds=0)]
    for value in HOSTILE:
        data: JsonObject = dict.fromkeys(("stories", "hits", "last", "total", "answer"), value)
        done = ToolFinished(
            agent="a", call="a.t1.1", name=GIVE_ANSWER, success=True, content="", data=data, lookup=Lookup.FOUND
        )
        (lookup,) = RunState.of([*begun, done]).lookups.values()
        assert lookup.stories == tuple(cast("list[JsonObject]", value) if isinstance(value, list) else ())
        assert answer_of(done) == (value if isinstance(value, dict) else None)
        hit: JsonObject = {"hits": [{"source": "S1", "offset": value, "line": value}, value]}
        given = [("read_source", data), ("read_webpage", data), ("web_search", data), ("search_corpus", hit)]
        progress.known.clear()
        progress.add(Results(results=tuple(CallResult(id="c", name=name, content="", data=one) for name, one in given)))
        assert set(progress.known) == {"S1"}
    for key in ("²", "9" * 5_000, "-1", "0", "2"):
        assert RunState.of(begun).agents["a"].call_at(f"a.t1.{key}") is None


def with_files(run: Path, *, has_report: bool) -> None:
    """Put files into the run; without a report, the commands write one."""
    for path in ("report.md", "findings/one.md"):
        (run / path).parent.mkdir(exist_ok=True)
        (run / path).write_text("# Report\n\nOutput rose by 12 % [S1].\n")
    if not has_report:
        (run / "report.md").unlink()


def hostile(chance: random.Random) -> tuple[list[dict[str, Any]], str]:
    """The records of a real run with a few values, or whole records, that nobody foresees."""
    records: list[dict[str, Any]] = [json.loads(line) for line in OLD.read_text().strip().split("\n")]
    done: list[str] = []
    if chance.random() < HALF:
        limits = next(one for one in records if one["type"] == "session_configured")["limits"]
        limits |= {name: {"value": chance.choice(NUMBERS), "origin": "set"} for name in Limits.model_fields}
        ended = next(one for one in records if one["type"] == "run_finished")
        ended["cause"] = chance.choice([cause.value for cause in EndCause])
        records = [one for one in records if one["type"] != "agent_continued"]
        done.append(f"{limits} {ended['cause']}")
    for _ in range(chance.randint(0 if done else 1, 3)):
        record = chance.choice(records)
        match chance.randint(0, 9):
            case 0:
                records.remove(record)
                done.append(f"without {record['type']}")
            case 1:
                records.insert(chance.randrange(len(records) + 1), json.loads(json.dumps(record)))
                done.append(f"again {record['type']}")
            case _:
                place = chance.choice(list(places(record)))
                value = chance.choice(HOSTILE)
                put(record, place, value)
                done.append(f"{record.get('type')} {place} = {value!r:.60}")
        if not records:
            break
    return records, "; ".join(done)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record, but those that only number and seal the lines."""
    inner: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value).items()
    elif isinstance(value, list):
        inner = enumerate(cast("list[object]", value))
    for key, one in inner:
        if path or key not in {"v", "seq", "sure", "prev", "mark", "crc", "type"}:
            yield (*path, key)
            yield from places(one, (*path, key))


def put(record: Any, path: tuple[Any, ...], value: object) -> None:  # noqa: ANN401 - JSON
    """Replace what is at a place."""
    for key in path[:-1]:
        record = record[key]
    record[path[-1]] = value


def sealed(records: list[dict[str, Any]]) -> bytes:
    """A journal with checksums that fit, as a stranger can make one."""
    lines, prev = list[bytes](), GENESIS
    for seq, record in enumerate(records, 1):
        fields = {key: value for key, value in record.items() if key not in {"sure", "prev", "mark", "crc"}}
        fields |= {"seq": seq, "sure": seq - 1, "prev": prev}
        head = json.dumps(fields, separators=(",", ":")).encode()[:-1]
        prev = f"{zlib.crc32(head):08x}"
        lines.append(head + f',"crc":"{prev}"}}\n'.encode())
    return b"".join(lines)
