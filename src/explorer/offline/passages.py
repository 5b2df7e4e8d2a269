"""The rule-driven searcher on the web and in the user's folder: search, read the best, keep the passages that fit."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from explorer.offline.notes import NoteQuote, ResearchNote, quote, short_reason, slug, write_note
from explorer.offline.phrases import Phrases
from explorer.offline.question import Wish
from explorer.offline.reading import (
    FolderHit,
    ListedHit,
    ListedStory,
    ReadPage,
    folder_hits,
    listed_hits,
    listed_stories,
    page_read,
)
from explorer.offline.script_state import Ask, Script, ScriptState, Step, ToolAnswer
from explorer.offline.text import is_quotable, names_in, sentences_of, unwrapped
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_RESULTS = 8
MAX_PAGES = 4
PAGE_PASSAGES = 3
MAX_QUERY_WORDS = 12
MAX_HN_HITS = 5


def search_web(state: ScriptState, wish: Wish, folder: str, gaps: Sequence[str] = ()) -> Script:
    """Search the web for the question, then read the best results; `gaps` are what is known to be missing before."""
    phrases, words = Phrases(wish.language), query_words(wish.question)
    (answer,) = yield Step(calls=(Ask("web_search", {"query": words, "max_results": MAX_RESULTS}),))
    hits = [] if answer.is_error else listed_hits(answer)
    if not hits:
        why = short_reason(answer.text) if answer.is_error else phrases("nothing")
        return (yield from _without_web(state, wish, folder, [*gaps, phrases("web_failed", words=words, why=why)]))
    if state.is_hurried:
        return (yield from _keep_hits(wish, folder, hits, gaps))
    return (yield from read_pages(wish, [hit.url for hit in hits[:MAX_PAGES]], folder, hits, gaps))


def query_words(question: str) -> str:
    """Return a question as a search query: on one line, at most a dozen words."""
    return " ".join(single_line(question).split()[: 2 * MAX_QUERY_WORDS])[:300]


def read_pages(
    wish: Wish, urls: Sequence[str], folder: str, hits: Sequence[ListedHit] = (), known_gaps: Sequence[str] = ()
) -> Script:
    """Read pages side by side, and write a note on each that says something about the question."""
    phrases = Phrases(wish.language)
    chosen = list(dict.fromkeys(urls))[:MAX_PAGES]
    answers = yield Step(calls=tuple(Ask("read_webpage", {"url": url}) for url in chosen))
    notes: list[ResearchNote] = []
    gaps = [*known_gaps]
    for url, answer in zip(chosen, answers, strict=True):
        page = None if answer.is_error else page_read(answer)
        if page is None:
            gaps.append(phrases("no_article", title=url, why=short_reason(answer.text)))
        else:
            notes.append(_page_note(page, wish.question))
    read = {url for url, answer in zip(chosen, answers, strict=True) if not answer.is_error}
    notes += [note for hit in hits if hit.url not in read and (note := _hit_note(hit, wish.question))]
    return (yield from keep_notes(notes, gaps, folder, phrases))


def passages_about(text: str, question: str, source: str, count: int) -> tuple[NoteQuote, ...]:
    """Return the quotable sentences that share most with a question, best first."""
    sentences = list(dict.fromkeys(sentence for sentence in sentences_of(text) if is_quotable(sentence)))
    ranked = rank_by_query(sentences, words_of(question))
    quotes = [quote(sentences[index], source) for _, index in ranked[: 2 * count]]
    return tuple(one for one in quotes if one)[:count]


def _page_note(page: ReadPage, question: str) -> ResearchNote:
    return ResearchNote(
        title=page.title,
        source=page.source,
        about=page.about,
        passages=passages_about(page.text, question, page.source, PAGE_PASSAGES),
    )


def _hit_note(hit: ListedHit, question: str) -> ResearchNote | None:
    passages = passages_about(hit.snippet, question, hit.source, 1)
    return ResearchNote(title=hit.title, source=hit.source, about=hit.url, passages=passages) if passages else None


def _keep_hits(wish: Wish, folder: str, hits: Sequence[ListedHit], gaps: Sequence[str]) -> Script:
    notes = [note for hit in hits if (note := _hit_note(hit, wish.question))]
    phrases = Phrases(wish.language)
    return (yield from keep_notes(notes, [*gaps, phrases("stopped")], folder, phrases))


def _without_web(state: ScriptState, wish: Wish, folder: str, gaps: list[str]) -> Script:
    """Search Hacker News when the web cannot be searched; note what is not known."""
    phrases = Phrases(wish.language)
    notes: list[ResearchNote] = []
    if "search_hn" in state.tools and not state.is_hurried:
        keywords = " ".join(dict.fromkeys(words_of(wish.question)[:4]))
        (answer,) = yield Step(calls=(Ask("search_hn", {"query": keywords or single_line(wish.question)[:80]}),))
        if answer.is_error:
            gaps.append(phrases("search_failed", words=keywords, why=short_reason(answer.text)))
        else:
            stories = listed_stories(answer)
            notes = [ResearchNote(title=story.title, story=story) for story in _fitting(stories, wish.question)]
    return (yield from keep_notes(notes, gaps, folder, phrases))


def _fitting(stories: Sequence[ListedStory], question: str) -> list[ListedStory]:
    """Stories whose titles share at least half of the question's words, and two of them."""
    wanted = set(words_of(question))
    enough = min(len(wanted), max(2, (len(wanted) + 1) // 2))
    return [story for story in stories if len(wanted & set(words_of(story.title))) >= enough][:MAX_HN_HITS]


def keep_notes(notes: Sequence[ResearchNote], gaps: Sequence[str], folder: str, phrases: Phrases) -> Script:
    """Write the notes, and what is not known into a file of its own."""
    calls = [
        Ask(
            "write_file",
            {
                "filepath": f"{folder or 'notes/'}{number:02d}-{slug(note.title) or 'page'}.md",
                "content": write_note(note, phrases),
                "mode": "overwrite",
            },
        )
        for number, note in enumerate(notes, 1)
    ]
    if gaps:
        text = f"# {phrases('unknown')}\n\n## {phrases('unknown')}\n\n" + "\n".join(f"- {gap}" for gap in gaps) + "\n"
        path = f"{folder or 'notes/'}not-known.md"
        calls.append(Ask("write_file", {"filepath": path, "content": text, "mode": "overwrite"}))
    if calls:
        yield Step(calls=tuple(calls))
    titles = "; ".join(f"{note.title} [{note.source or (note.story.source if note.story else '')}]" for note in notes)
    summary = f"{len(notes)} notes were written: {titles or 'none'}."[:1400]
    return f"{summary}\nNot known: {'; '.join(gaps)[:700]}" if gaps else summary


SEARCH, READ = "search_corpus", "read_document"
IN_FOLDER = "Search the user's own folder for the answer to the question"
"""How a task says where to look."""
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
