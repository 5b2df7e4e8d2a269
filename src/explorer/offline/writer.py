"""The rule-driven writer: the report from the files handed over, and its answers to follow-ups."""

import re
from collections.abc import Sequence

from explorer.offline.analyzer import context_files, stories_of
from explorer.offline.notes import NoteQuote, ResearchNote, gaps_in, read_note
from explorer.offline.phrases import PHRASES
from explorer.offline.question import QuestionKind, Wish, understand_task
from explorer.offline.ranking import about, most_notable
from explorer.offline.report import Findings, compose, first_words, follow_up
from explorer.offline.script_state import Ask, Script, ScriptState, Step, read_files
from explorer.offline.web import passages_about
from explorer.sources.threads import without_heads
from explorer.text.frontmatter import split_frontmatter
from explorer.text.ranking import rank_by_query
from explorer.text.words import words_of

REPORT = "report.md"
GAP_LINE = re.compile(r"^Gap: (.+)$", re.MULTILINE)
FOLLOW_LINE = re.compile(r"^Follow-up: (.+)$", re.MULTILINE)
FROM_FILES = "The question is about the user's own files."
THEME_HEADINGS = tuple(f"## {words}" for words in PHRASES["themes"])
FOLLOW_NOTES = 3
FOLLOW_PASSAGES = 3
FOLLOW_SHARE = 0.6
"""Of the best note's fit, that another must have."""


def write(state: ScriptState) -> Script:
    """Do one task: the report, or an answer to a follow-up at its end."""
    texts = yield from read_files(state, context_files(state.task))
    follow = FOLLOW_LINE.search(state.task.words)
    if follow:
        return (yield from _answer(state, follow[1], texts))
    content = report_of(
        understand_task(state.task),
        texts,
        GAP_LINE.findall(state.task.words),
        from_files=FROM_FILES in state.task.words,
    )
    yield write_report(content)
    return f"{REPORT} is written: {first_words(content)}"


def write_report(content: str, mode: str = "overwrite") -> Step:
    """The turn that writes the report."""
    return Step(calls=(Ask("write_file", {"filepath": REPORT, "content": content, "mode": mode}),))


def report_of(wish: Wish, texts: dict[str, str], gaps: Sequence[str] = (), *, from_files: bool = False) -> str:
    """The report that helpers' files give."""
    notes = [note for text in texts.values() if (note := read_note(text))]
    is_about_stories = wish.kind is QuestionKind.HACKER_NEWS and not from_files
    shown = {note.story.id for note in notes if note.story}
    all_listed = stories_of(texts)
    listed = [story for story in all_listed if story.id not in shown]
    if wish.topic:
        listed = about(listed, wish.topic_words)
    beyond = most_notable(listed) if not shown or not wish.is_counted else []
    if is_about_stories and not shown and beyond:
        # The run was stopped before any story was looked at: what the list itself says is better than nothing.
        notes += [ResearchNote(title=story.title, story=story) for story in beyond[: wish.count]]
        beyond = beyond[wish.count :]
    all_gaps = [*gaps, *(gap for text in texts.values() if not read_note(text) for gap in gaps_in(text))]
    themes = [line for text in texts.values() for line in _themes(text)] if not wish.topic else []
    findings = Findings(notes=notes, themes=themes, gaps=all_gaps, others=beyond, listed=len(all_listed))
    return compose(wish, findings, is_about_stories=is_about_stories)


def _themes(text: str) -> list[str]:
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line in THEME_HEADINGS), len(lines))
    found: list[str] = []
    for line in lines[start + 1 :]:
        if line.startswith("#"):
            break
        if line.startswith("- **"):
            found.append(line)
    return found


def _answer(state: ScriptState, message: str, texts: dict[str, str]) -> Script:
    """Passages that meet the follow-up: from the stored sources behind the notes that fit it best."""
    wish = understand_task(state.task)
    notes = [note for text in texts.values() if (note := read_note(text)) and (note.has_text or note.story)]
    fitting = _fitting(notes, message)
    owner = {source: note.title for note in reversed(fitting) for source in _sources(note)}
    stored: dict[str, str] = {}
    if owner and not state.is_hurried:
        stored = yield from read_files(state, [f".explorer/sources/{source}.md" for source in owner])
    quotes = [
        (owner[source], quoted)
        for source in owner
        for quoted in passages_about(
            _plain(stored.get(f".explorer/sources/{source}.md", "")), message, source, FOLLOW_PASSAGES
        )
    ]
    quotes = quotes or [(note.title, quoted) for note in fitting for quoted in _quotes(note)[:2]]
    content = follow_up(message, quotes, wish.language)
    yield write_report(content, mode="append")
    return f"An answer to the follow-up was added to {REPORT}: {len(quotes)} passages from {len(fitting)} notes."


def _fitting(notes: Sequence[ResearchNote], message: str) -> list[ResearchNote]:
    candidates = [f"{note.title} {' '.join(quoted.text for quoted in _quotes(note))}" for note in notes]
    ranked = rank_by_query(candidates, words_of(message))[:FOLLOW_NOTES]
    return [notes[index] for score, index in ranked if score >= FOLLOW_SHARE * ranked[0][0]]


def _quotes(note: ResearchNote) -> list[NoteQuote]:
    return [*note.article, *note.post, *note.passages, *note.discussion]


def _sources(note: ResearchNote) -> list[str]:
    """The sources with text behind a note."""
    return list(dict.fromkeys(quoted.source for quoted in _quotes(note)))


def _plain(stored: str) -> str:
    """A stored source without its frontmatter, comments without their heads."""
    return without_heads(split_frontmatter(stored).body)
