"""The rule-driven roles that read files: the analyzer finds passages of the user's files, others keep notes."""

import re

from explorer.offline.documents import ReadDocument, as_table, gist_of, keep, parts_of, passages_about, sections_of
from explorer.offline.phrases import Phrases
from explorer.offline.question import understand_task
from explorer.offline.script_state import Ask, Script, ScriptState, Step, read_files
from explorer.offline.searcher import folder_in
from explorer.offline.sections import quotes_in, title_of
from explorer.schema.messages import TaskData
from explorer.text.frontmatter import without_frontmatter
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

USER_FILE = re.compile(r"`([^`\n]+)` \[(S\d+)\]")
MAX_CONTEXT_FILES = 40
MAX_LINES = 12


def context_files(task: TaskData) -> list[str]:
    """Return the paths of the files that come with a task."""
    return list(dict.fromkeys(path for path, _ in task.files))[:MAX_CONTEXT_FILES]


def analyze(state: ScriptState) -> Script:
    """Find the passages of the user's files that the task names; without any, keep notes of other helpers' files."""
    sources = dict(USER_FILE.findall(state.task.words))
    if not sources:
        return (yield from take_notes(state))
    wish = understand_task(state.task)
    phrases = Phrases(wish.language)
    texts = yield from read_files(state, list(sources))
    files = [
        as_table(
            ReadDocument(path.removeprefix("inputs/"), sources[path], path, _own_words(text), is_note=True),
            path,
            phrases,
        )
        for path, text in texts.items()
    ]
    if wish.has_subject:
        documents = [part for one in files for part in parts_of(one)]
        found = passages_about(documents, wish.subject, follows_names=True)
    else:
        found = gist_of(files)
    gaps = [phrases("no_text", title=path) for path in sources if path not in texts]
    gaps += [phrases("lines_cut", title=path) for path in texts if path in state.cut_files]
    return (yield from keep(sections_of(found, phrases), gaps, folder_in(state.task) or "passages/", phrases))


def _own_words(text: str) -> str:
    """Return a file without the facts that the engine writes above the text of a PDF or an office file."""
    return without_frontmatter(text) if text.startswith("---\noriginal: ") else text


def take_notes(state: ScriptState) -> Script:
    """Copy the quotes of the files that share most words with the task into one file of notes."""
    wish = understand_task(state.task)
    texts = yield from read_files(state, context_files(state.task))
    lines = [f"- “{one.text}” [{one.source}] ({title_of(text)})" for text in texts.values() for one in quotes_in(text)]
    ranked = rank_by_query(lines, words_of(wish.question))
    chosen = [lines[index] for _, index in ranked[:MAX_LINES]] or lines[:MAX_LINES]
    if not chosen:
        found = f"Without a language model, nothing to quote was found in {len(texts)} files."
        return f"{found}\nNot known: the answer to the task."
    path = f"{folder_in(state.task)}notes.md"
    content = f"# {single_line(wish.question)[:120]}\n\n" + "\n".join(chosen) + "\n"
    yield Step(calls=(Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),))
    return f"{len(chosen)} cited lines from {len(texts)} files are in {path}, chosen by shared words."
