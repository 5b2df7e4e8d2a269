"""The user's folder: what its documents say about a question, which there are, and what is quoted of all of them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from explorer.offline.documents import (
    GIST_SENTENCES,
    HOP_BASE,
    MAX_RESULTS,
    FoundSentence,
    ReadDocument,
    as_table,
    gist_of,
    keep,
    page_gaps,
    parts_of,
    passages_about,
    query_words,
    read_pages,
    sections_of,
)
from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, Wish
from explorer.offline.reading import ListedHit, harmless, listed_documents, listed_hits, not_searched, page_read
from explorer.offline.script_state import Ask, Script, ScriptState, Step, ToolAnswer
from explorer.offline.sections import short_reason
from explorer.offline.text import names_in
from explorer.text.words import words_of

SEARCH, READ = "search_corpus", "read_document"
MAX_NAMES = 6
FIRST_DOCUMENTS = 4
FURTHER_DOCUMENTS = 2
SUMMARIZED_DOCUMENTS = 12
"""The largest number of documents that are quoted where a question asks for the whole folder."""
LEAST_GIST_SENTENCES = 2
NAMED_DOCUMENTS = 12
"""The largest number of documents that a report names where none of them says anything about the question."""
NEAR_BEGINNING = 12_000
"""A passage before this offset is read from the beginning of its document."""
LEAD_CHARS = 2_000
"""Read before a passage that lies further in."""


def search_in_folder(state: ScriptState, wish: Wish, folder: str) -> Script:
    """Quote what the folder says about the question, or what it has; the question is not sent to the web."""
    phrases, urls = Phrases(wish.language), URL.findall(wish.question)
    if wish.has_subject or urls:
        found = yield from search_folder(state, wish)
        passages = passages_about(found.documents, wish.subject, follows_names=True) if wish.has_subject else []
    else:
        found = yield from read_folder(state, phrases)
        passages = found.gist()
    if not passages:
        found.gaps.append(phrases("folder_nothing"))
        found.gaps += [phrases("not_searched", files=found.not_searched)] if found.not_searched else []
        if not state.is_hurried and not urls:
            found.gaps += yield from _what_there_is(found, phrases)
        if not state.is_hurried and urls:
            return (yield from read_pages(wish, urls, folder, (), found.gaps))
    return (yield from keep(sections_of(passages, phrases), found.gaps, folder, phrases))


def _what_there_is(found: "FolderFindings", phrases: Phrases) -> Generator[Step, Sequence[ToolAnswer], list[str]]:
    """Return which documents the folder has, for a report that found nothing in them."""
    paths, total = (found.listed, found.total) if found.listed else (yield from _list())
    named = phrases("separator").join(f"`{harmless(path)}`" for path in paths[:NAMED_DOCUMENTS])
    more = f" {phrases('and_more', count=total - NAMED_DOCUMENTS)}" if total > NAMED_DOCUMENTS else ""
    there = [phrases("folder_has", files=f"{named}{more}")] if paths else []
    return [*there, phrases("web_not_searched")]


def _list() -> Generator[Step, Sequence[ToolAnswer], tuple[list[str], int]]:
    """Return the paths of the folder's documents, and how many there are; a long list is cut."""
    (answer,) = yield Step(calls=(Ask(SEARCH, {"query": ""}),))
    return ([], 0) if answer.is_error else listed_documents(answer)


def read_folder(state: ScriptState, phrases: Phrases) -> Generator[Step, Sequence[ToolAnswer], "FolderFindings"]:
    """Read the first documents of the folder, for a question that asks for all of it."""
    found = FolderFindings()
    found.listed, found.total = yield from _list()
    chosen = [] if state.is_hurried else found.listed[:SUMMARIZED_DOCUMENTS]
    hits = [ListedHit("", path, "", path=path) for path in chosen]
    yield from _read(hits, found, phrases, is_whole=True)
    left = found.total - len(chosen)
    if chosen and left:
        found.gaps.append(phrases("folder_rest", count=left, total=found.total))
    return found


@dataclass
class FolderFindings:
    """What the folder gave."""

    documents: list[ReadDocument] = field(default_factory=list[ReadDocument])
    gaps: list[str] = field(default_factory=list[str])
    not_searched: str = ""
    """The files that were left out, and why."""
    listed: list[str] = field(default_factory=list[str])
    """The paths of the documents, where they were listed."""
    total: int = 0
    """The number of documents, where they were listed."""

    def gist(self) -> list[FoundSentence]:
        """Return what says most about each document; less of each where there are many."""
        sentences = max(LEAST_GIST_SENTENCES, GIST_SENTENCES // max(1, len(self.documents)))
        return gist_of(self.documents, sentences if len(self.documents) > 1 else GIST_SENTENCES)


def search_folder(state: ScriptState, wish: Wish) -> Generator[Step, Sequence[ToolAnswer], FolderFindings]:
    """Search in two rounds: for what fits the question, then for the names that the best passages brought."""
    found, phrases = FolderFindings(), Phrases(wish.language)
    question = query_words(wish.question)
    hits = yield from _hits(question, found, phrases)
    yield from _read(hits[:FIRST_DOCUMENTS], found, phrases)
    best = passages_about(found.documents, wish.question)[:HOP_BASE]
    known = set(words_of(wish.question))
    names = [name for one in best for name in names_in(one.whole) if set(words_of(name)) - known]
    if names and not state.is_hurried:
        named = " ".join(list(dict.fromkeys(names))[:MAX_NAMES])
        more = yield from _hits(f"{named} {question}"[:400], found, phrases)
        read = {hit.path for hit in hits[:FIRST_DOCUMENTS]}
        unread = {hit.path: hit for hit in [*more, *hits] if hit.path not in read}
        yield from _read(list(unread.values())[:FURTHER_DOCUMENTS], found, phrases)
    return found


def _hits(
    query: str, found: FolderFindings, phrases: Phrases
) -> Generator[Step, Sequence[ToolAnswer], list[ListedHit]]:
    (answer,) = yield Step(calls=(Ask(SEARCH, {"query": query, "max_results": MAX_RESULTS}),))
    if answer.is_error:
        found.gaps.append(phrases("folder_failed", why=short_reason(answer.text)))
        return []
    found.not_searched = not_searched(answer)
    return listed_hits(answer)


def _read(
    hits: Sequence[ListedHit], found: FolderFindings, phrases: Phrases, *, is_whole: bool = False
) -> Generator[Step, Sequence[ToolAnswer], None]:
    """Read documents side by side, each where its best passage is."""
    if not hits:
        return
    answers = yield Step(calls=tuple(Ask(READ, {"path": hit.path, "offset": _start(hit)}) for hit in hits))
    for hit, answer in zip(hits, answers, strict=True):
        page = None if answer.is_error else page_read(answer)
        if page is None or page.flags:
            found.gaps += page_gaps(hit.title, page, answer, phrases)
        if page is not None:
            document = ReadDocument(page.title, page.source, page.about, page.text, is_note=True)
            made = document if _start(hit) else as_table(document, hit.path, phrases)
            found.documents += [made] if is_whole else parts_of(made)


def _start(hit: ListedHit) -> int:
    return 0 if hit.offset < NEAR_BEGINNING else hit.offset - LEAD_CHARS
