"""The runs that are cut off: what is asked, and what a model that always answers alike says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, Request, Results, Turn, UserText
from explorer.testing import Script, says

QUESTION = "How was May for the plant?"
FOLLOW_UP = "And what about June?"
Call = tuple[str, JsonObject]
FINISH: Call = ("finish_exploration", {"summary": "The plant had a good May."})
REPORT = (
    "# A good May for the plant\n\nSolar output rose by 12 % in May [S1, S2], before the battery was replaced on "
    "3 June [S1, S2]. Both come from the plant's own logs and from nowhere else.\n"
)
INPUTS = {
    "may.md": "Solar output rose by 12 % in May, says the plant's log.\n",
    "june.md": "The battery was replaced on 3 June.\n",
}
LONG_LINES = "".join(f"Line {number} of the log: {'nothing of note, ' * 30}\n" for number in range(1, 101))
"""Over what a conversation takes in one result."""
WINDOW_CHARS = 9_000
"""Of a history, in the scenario whose model has a small window."""
TOOLS = {
    "orchestrator": "call_agent, read_file, list_files, search_files, write_file, edit_file, post_line, "
    "finish_exploration",
    "searcher": "read_file, write_file",
    "analyzer": "read_file, write_file",
    "writer": "read_file, write_file, edit_file",
}

Replies = Sequence[Turn] | Script


@dataclass(frozen=True)
class Scenario:
    """One kind of run."""

    name: str
    scripts: Mapping[str, Replies]
    """By role."""
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    """The user's files."""
    message: str = ""
    """A follow-up, given once the run is complete."""
    is_word_for_word: bool = True
    """Whether every request of a run that was cut off is one of an undisturbed run's; not so where a model has to
    be told that an effect is unknown."""


def write_roles(folder: Path) -> Path:
    """Roles with short prompts, so that the journals are short; returns their folder."""
    roles = folder / "roles"
    roles.mkdir(parents=True)
    for role, tools in TOOLS.items():
        head = f"name: {role}\ndescription: Does what a {role} does.\ntools: [{tools}]\nmodel: balanced\n"
        (roles / f"{role}.md").write_text(f"---\n{head}---\nYou are the {role}.\n")
    return roles


def _write(path: str, text: str, mode: str = "create") -> Call:
    return "write_file", {"filepath": path, "content": text, "mode": mode}


def _edit(path: str, old: str, new: str) -> Call:
    return "edit_file", {"filepath": path, "old_string": old, "new_string": new}


def _read(path: str, **lines: int) -> Call:
    return "read_file", {"filepath": path, **lines}


def _ask(role: str, task: str, **more: str) -> Call:
    return "call_agent", {"agent_type": role, "task_description": task, **more}


def plain() -> Scenario:
    """One agent that writes, appends, edits and reads."""
    replies = [
        says("I write.", _write("notes.md", "# Notes\n\nMay was good.\n")),
        says(
            "", _write("notes.md", "June is not over.\n", "append"), _write("notes.md", "July is to come.\n", "append")
        ),
        says("", _edit("notes.md", "May was good.", "May was good [S1]."), _read("notes.md")),
        says("", _write("report.md", REPORT)),
        says("", _edit("report.md", "from nowhere else", "from no one else")),
        says("", FINISH),
    ]
    return Scenario("plain", {"orchestrator": replies}, INPUTS)


def parallel() -> Scenario:
    """One turn with many calls beside each other, one of them with a result too long for a conversation."""
    reading = [_read("inputs/may.md"), _read("inputs/plant-log.md")]
    looking: list[Call] = [("list_files", {}), ("search_files", {"pattern": "june"})]
    wrong: list[Call] = [_read("missing.md"), ("no_such_tool", {})]
    replies = [
        says("All at once.", *reading, *looking, *wrong),
        says("", _write("report.md", REPORT)),
        says("", FINISH),
    ]
    return Scenario("parallel", {"orchestrator": replies}, INPUTS | {"plant-log.md": LONG_LINES})


def helpers() -> Scenario:
    """Three searchers in parallel, an analyzer, a writer, and a report that cites the user's files."""
    lead = [
        says("Three looks.", *[_ask("searcher", f"Look at part {part}.") for part in ("alpha", "beta", "gamma")]),
        says("", _ask("analyzer", "Weigh the parts."), _read("parts/alpha.md")),
        says("", _ask("writer", "Write it.")),
        says("", _read("report.md")),
        says("", FINISH),
    ]
    scripts: dict[str, Replies] = {
        "orchestrator": lead,
        "searcher": _search,
        "analyzer": [
            says("", _write("analysis.md", "# Analysis\n\nMay was better [S1].\n")),
            says("May was better [S1]."),
        ],
        "writer": [says("", _write("report.md", REPORT)), says("It is written.\nNot known: the cause.")],
    }
    return Scenario("helpers", scripts, INPUTS)


def _search(request: Request) -> Turn:
    first = request.history[0]
    assert isinstance(first, UserText)
    part = next(name for name in ("alpha", "beta", "gamma") if name in first.said)
    replies = [
        says("", _read("inputs/may.md")),
        says("", _write(f"parts/{part}.md", f"# Part {part}\n\nSolar output rose by 12 % in May [S1].\n")),
        says(f"Part {part}: output rose by 12 % [S1]."),
    ]
    return replies[sum(isinstance(message, Turn) for message in request.history)]


def follow_up() -> Scenario:
    """A helper asked a second time by its id; then the user asks the finished run something further."""
    lead = [
        says("", _ask("writer", "Write it.")),
        says("", _ask("writer", "Mend the end.", agent_id="writer-1")),
        says("", FINISH),
        says("", _ask("writer", "Add June.", agent_id="writer-1")),
        says("", FINISH),
    ]
    writer = [
        says("", _write("report.md", REPORT)),
        says("Written."),
        says("", _edit("report.md", "from nowhere else", "from no one else")),
        says("Mended."),
        says("", _edit("report.md", "3 June [S1, S2]", "3 June [S1, S2], as everybody knows")),
        says("June is added."),
    ]
    return Scenario("follow_up", {"orchestrator": lead, "writer": writer}, INPUTS, FOLLOW_UP)


def compaction() -> Scenario:
    """A model whose window is too small for all it reads."""
    replies = [
        *[
            says("", _read("inputs/plant-log.md", start_line=start, end_line=start + 3))
            for start in (1, 5, 9, 13, 17, 21)
        ],
        says("", _write("report.md", REPORT)),
        says("", FINISH),
    ]

    def small_window(request: Request) -> Turn:
        shown = [result for message in request.history if isinstance(message, Results) for result in message.results]
        if sum(len(result.content) for result in shown) > WINDOW_CHARS:
            raise ModelError(ModelFault.CONTEXT_EXCEEDED, "that is too long for this model")
        return replies[sum(isinstance(message, Turn) for message in request.history)]

    return Scenario("compaction", {"orchestrator": small_window}, INPUTS | {"plant-log.md": LONG_LINES})


def external() -> Scenario:
    """Calls that change something outside, alone and beside each other."""
    replies = [
        says("", ("post_line", {"words": "one"})),
        says("", ("post_line", {"words": "two"}), ("post_line", {"words": "three"}), _read("inputs/may.md")),
        says("", _write("report.md", REPORT)),
        says("", FINISH),
    ]
    return Scenario("external", {"orchestrator": replies}, INPUTS, is_word_for_word=False)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    make.__name__: make for make in (plain, parallel, helpers, follow_up, compaction, external)
}
