"""A follow-up on a finished run: a smaller second round over the files that are there."""

import re
from collections.abc import Generator, Sequence

from explorer.offline.phrases import SAMPLE_LINE, language_of
from explorer.offline.question import Wish
from explorer.offline.reading import reply_in
from explorer.offline.report import follow_up
from explorer.offline.script_state import Ask, ScriptState, Step, ToolAnswer, read_files
from explorer.offline.writer import REPORT, write_report
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_FILES = 15
MAX_WORDS = 8
NO_CONTEXT = frozenset({REPORT, "question.txt"})


def answer_follow_up(
    state: ScriptState, message: str, wish: Wish, writer: str
) -> Generator[Step, Sequence[ToolAnswer], str]:
    """Find the files that fit, let the writer add a section to the report, and read it; returns the report."""
    pattern = "|".join(re.escape(word) for word in words_of(message)[:MAX_WORDS]) or re.escape(
        single_line(message)[:60]
    )
    found, listed = yield Step(
        calls=(Ask("search_files", {"pattern": pattern, "glob": "*.md"}), Ask("list_files", {"glob": "*.md"}))
    )
    paths = _fitting(found, listed)
    task = [
        f"Add an answer to a follow-up at the end of `{REPORT}`.",
        f"Follow-up: {single_line(message)}",
        "",
        f"Question: {single_line(wish.question)}",
        f"Language of the report: {language_of(message) if message else wish.language}",
        *([SAMPLE_LINE] if wish.is_sample else []),
    ]
    arguments = {"agent_type": "writer", "task_description": "\n".join(task), "context_files": paths}
    if writer:
        arguments["agent_id"] = writer
    (answer,) = yield Step(calls=(Ask("call_agent", arguments),))
    if answer.is_error or reply_in(answer.data).status == "failed":
        yield write_report(follow_up(message, (), wish.language), mode="append")
    texts = yield from read_files(state, [REPORT])
    return texts.get(REPORT, "")


def _fitting(found: ToolAnswer, listed: ToolAnswer) -> list[str]:
    """The run's notes: those with most matching lines first."""
    matches: dict[str, int] = found.data.get("matches", {})
    paths: list[str] = listed.data.get("paths", [])
    notes = [path for path in paths if path.endswith(".md") and path not in NO_CONTEXT and not path.startswith(".")]
    return sorted(notes, key=lambda path: -matches.get(path, 0))[:MAX_FILES]
