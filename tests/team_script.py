"""A whole run's conversation, written once and spoken over any wire: the scripted models of the end-to-end tests."""

import json
import re
from pathlib import Path

from explorer.journal.listing import read_records
from explorer.schema.events import JournalRecord
from model_servers import Asked, Reply

ROLES = {
    "You lead an exploration": "orchestrator",
    "You find things out": "searcher",
    "You make sense": "analyzer",
    "You write the report": "writer",
}
NOTES = "Solar output rose by 12 % in May, says the plant's log.\nThe battery was replaced on 3 June.\n"


def role_of(asked: Asked) -> str:
    """Which role's prompt a request carries."""
    return next(role for words, role in ROLES.items() if words in asked.system)


def team(asked: Asked) -> Reply:
    """Answer for any role: two searchers in parallel, a look into a file, an analyzer, a writer, the end."""
    return {"orchestrator": _lead, "searcher": _search, "analyzer": _analyze, "writer": _write}[role_of(asked)](asked)


def _lead(asked: Asked) -> Reply:
    steps = [
        Reply(
            text="Three looks at the notes.",
            calls=[
                ("call_agent", {"agent_type": "searcher", "task_description": f"Look at the notes, part {part}."})
                for part in ("alpha", "beta", "gamma")
            ],
        ),
        Reply(calls=[("read_file", {"filepath": "parts/alpha.md"})]),
        Reply(
            calls=[
                (
                    "call_agent",
                    {
                        "agent_type": "analyzer",
                        "task_description": "Weigh the parts.",
                        "context_files": ["parts/alpha.md", "parts/beta.md"],
                    },
                )
            ]
        ),
        Reply(
            calls=[
                (
                    "call_agent",
                    {"agent_type": "writer", "task_description": "Write it.", "context_files": ["analysis.md"]},
                )
            ]
        ),
        Reply(calls=[("read_file", {"filepath": "report.md"})]),
        Reply(calls=[("finish_exploration", {"summary": "The plant had a good May."})]),
    ]
    return steps[len(asked.results) - 2 if len(asked.results) > 2 else 0]


def _search(asked: Asked) -> Reply:
    part = next(name for name in ("alpha", "beta", "gamma") if name in asked.task)
    if not asked.results:
        return Reply(calls=[("read_file", {"filepath": "inputs/notes.md"})])
    if len(asked.results) == 1:
        text = f"# Part {part}\n\nSolar output rose by 12 % in May [S1].\n"
        return Reply(calls=[("write_file", {"filepath": f"parts/{part}.md", "content": text})])
    return Reply(text=f"Part {part}: output rose by 12 % [S1].\nNot known: the cause.")


def _analyze(asked: Asked) -> Reply:
    if not asked.results:
        return Reply(
            calls=[("read_file", {"filepath": "parts/alpha.md"}), ("read_file", {"filepath": "parts/beta.md"})]
        )
    if len(asked.results) == 2:
        text = "# Analysis\n\nMay was better by 12 % [S1]; the battery came later [S1].\n"
        return Reply(calls=[("write_file", {"filepath": "analysis.md", "content": text})])
    return Reply(text="May was better [S1].\nNot known: the cause.")


def _write(asked: Asked) -> Reply:
    if not asked.results:
        return Reply(calls=[("read_file", {"filepath": "analysis.md"})])
    if len(asked.results) == 1:
        text = (
            "# A good May for the plant\n\nSolar output rose by 12 % in May [S1], before the battery was replaced on "
            "3 June [S1]. Both come from the plant's own log and from nowhere else.\n"
        )
        return Reply(calls=[("write_file", {"filepath": "report.md", "content": text, "mode": "overwrite"})])
    return Reply(text="The report says that May was good [S1].\nNot known: the cause.")


def records_of(folder: Path) -> list[JournalRecord]:
    """All records of a run."""
    return list(read_records(folder))


def only_run(workspace: Path) -> Path:
    """The folder of the one run in a workspace."""
    (folder,) = [path for path in workspace.glob("[!.]*") if path.is_dir()]
    return folder


def body_of(report: str) -> str:
    """A report without its frontmatter."""
    return report.split("\n---\n", 1)[1]


def cited_references(report: str) -> set[str]:
    """The source ids that the references of a report name."""
    return set(re.findall(r"`(S\d+)`", report))


def last_json(stdout: str) -> dict[str, object]:
    """The one JSON object a command printed."""
    found: dict[str, object] = json.loads(stdout)
    return found
