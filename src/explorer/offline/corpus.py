"""The rule-driven searcher in the user's own folder: search, read the best documents, follow the names they bring."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from explorer.offline.notes import ResearchNote, short_reason
from explorer.offline.phrases import Phrases
from explorer.offline.question import Wish
from explorer.offline.reading import FolderHit, ReadPage, folder_hits, page_read
from explorer.offline.script_state import Ask, ScriptState, Step, ToolAnswer
from explorer.offline.text import names_in, unwrapped
from explorer.offline.web import passages_about, query_words
from explorer.text.words import words_of

SEARCH, READ = "search_corpus", "read_document"
IN_FOLDER = "Search the user's own folder for the answer to the question"
"""How a task says where to look."""
MAX_RESULTS = 8
FIRST_DOCUMENTS = 4
FURTHER_DOCUMENTS = 2
PASSAGES = 3
MAX_NAMES = 6
NEAR_BEGINNING = 12_000
"""A passage before this offset is read from the beginning of its document."""
LEAD_CHARS = 2_000
"""Read before a passage that lies further in."""


@dataclass
class FolderFindings:
    """What the folder gave."""

    notes: list[ResearchNote] = field(default_factory=list[ResearchNote])
    gaps: list[str] = field(default_factory=list[str])
    silent: list[ReadPage] = field(default_factory=list[ReadPage])
    """Documents that were read and hold no sentence about the question."""


Reading = Generator[Step, Sequence[ToolAnswer], None]


def search_folder(state: ScriptState, wish: Wish) -> Generator[Step, Sequence[ToolAnswer], FolderFindings]:
    """Two rounds: what meets the question, then what meets the names that the best passages brought."""
    found, phrases = FolderFindings(), Phrases(wish.language)
    question = query_words(wish.question)
    hits = yield from _hits(question, found, phrases)
    yield from _read(hits[:FIRST_DOCUMENTS], wish.question, found, phrases)
    names = _new_names(found.notes, wish.question)
    if names and not state.is_hurried:
        known = {hit.path for hit in hits[:FIRST_DOCUMENTS]}
        more = yield from _hits(f"{' '.join(names)} {question}"[:400], found, phrases)
        unread = [hit for hit in [*more, *hits] if hit.path not in known]
        further = list({hit.path: hit for hit in unread}.values())
        wanted = f"{wish.question} {' '.join(names)}"
        silent, found.silent = found.silent, []
        for page in silent:
            _note(page, wanted, found)
        yield from _read(further[:FURTHER_DOCUMENTS], wanted, found, phrases)
    return found


def _hits(
    query: str, found: FolderFindings, phrases: Phrases
) -> Generator[Step, Sequence[ToolAnswer], list[FolderHit]]:
    (answer,) = yield Step(calls=(Ask(SEARCH, {"query": query, "max_results": MAX_RESULTS}),))
    if answer.is_error:
        found.gaps.append(phrases("folder_failed", why=short_reason(answer.text)))
        return []
    return folder_hits(answer)


def _read(hits: Sequence[FolderHit], wanted: str, found: FolderFindings, phrases: Phrases) -> Reading:
    """Read documents side by side, each where its best passage is; keep a note on each that can be quoted."""
    if not hits:
        return
    calls = tuple(Ask(READ, {"path": hit.path, "offset": _start(hit)}) for hit in hits)
    answers = yield Step(calls=calls)
    for hit, answer in zip(hits, answers, strict=True):
        page = None if answer.is_error else page_read(answer)
        if page is None:
            found.gaps.append(phrases("no_document", title=hit.title, why=short_reason(answer.text)))
            continue
        if page.flags:
            found.gaps.append(phrases("flagged", title=page.title, flags=page.flags))
        _note(page, wanted, found)


def _note(page: ReadPage, wanted: str, found: FolderFindings) -> None:
    """Keep what a document says about what is wanted; without a word of it, the document for later."""
    passages = passages_about(unwrapped(page.text), wanted, page.source, PASSAGES)
    if passages:
        found.notes.append(ResearchNote(title=page.title, source=page.source, about=page.about, passages=passages))
    else:
        found.silent.append(page)


def _start(hit: FolderHit) -> int:
    return 0 if hit.offset < NEAR_BEGINNING else hit.offset - LEAD_CHARS


def _new_names(notes: Sequence[ResearchNote], question: str) -> list[str]:
    """Names in the best passages that the question does not have: they may lead to a further document."""
    known = set(words_of(question))
    texts = [f"{note.title}. {passage.text}" for note in notes[:2] for passage in note.passages[:2]]
    names = [name for text in texts for name in names_in(text) if set(words_of(name)) - known]
    return list(dict.fromkeys(names))[:MAX_NAMES]
