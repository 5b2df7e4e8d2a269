"""Any other role without a language model: reads the files handed over, keeps what meets the task, sums it up."""

from explorer.offline.analyzer import context_files
from explorer.offline.notes import read_note
from explorer.offline.question import understand_task
from explorer.offline.script_state import Ask, Script, ScriptState, Step, read_files
from explorer.offline.searcher import folder_in
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_LINES = 12


def take_notes(state: ScriptState) -> Script:
    """Copy the cited lines of the files that share most words with the task into one file of notes."""
    wish = understand_task(state.task)
    paths = context_files(state.task)
    texts = yield from read_files(state, paths)
    lines = [line for text in texts.values() for line in _cited_lines(text)]
    ranked = rank_by_query(lines, words_of(wish.question))
    chosen = [lines[index] for _, index in ranked[:MAX_LINES]] or lines[:MAX_LINES]
    if not chosen:
        found = f"Without a language model, nothing to quote was found in {len(paths)} files."
        return f"{found}\nNot known: the answer to the task."
    path = f"{folder_in(state.task)}notes.md"
    content = f"# {single_line(wish.question)[:120]}\n\n" + "\n".join(chosen) + "\n"
    yield Step(calls=(Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),))
    return f"{len(chosen)} cited lines from {len(texts)} files are in {path}, chosen by shared words."


def _cited_lines(text: str) -> list[str]:
    note = read_note(text)
    if note is None:
        return []
    quotes = [*note.article, *note.post, *note.passages, *note.discussion]
    return [f"- “{quoted.text}” [{quoted.source}] ({note.title})" for quoted in quotes]
