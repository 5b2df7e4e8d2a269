"""Passages of documents that are about a question: of pages, of the user's folder and of the user's files."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, Wish, understand_task
from explorer.offline.reading import ListedHit, ReadPage, harmless, listed_hits, page_read
from explorer.offline.script_state import Ask, Script, ScriptState, Step, ToolAnswer, read_files, writing
from explorer.offline.sections import (
    NoteQuote,
    document_section,
    quote,
    quotes_in,
    short_reason,
    slug,
    title_of,
    unknown,
)
from explorer.offline.text import (
    Candidate,
    best_sentences,
    covered,
    is_quotable,
    names_in,
    notes_of,
    relevant,
    row_heads,
    sentences_of,
    unwrapped,
)
from explorer.schema.messages import TaskData
from explorer.text.frontmatter import without_frontmatter
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_RESULTS = 8
MAX_PAGES = 4
MAX_PASSAGES = 8
GIST_SENTENCES = 6
"""Quoted of a text that a question asks for as a whole."""
HOP_PASSAGES = 4
ANSWERED = 0.75
"""The share of a question that a passage has if it needs no second step."""
HOP_BASE = 3
MAX_HOLDERS = 6
"""The number of passages up to which a name leads somewhere."""
MAX_QUERY_WORDS = 24
TABLE_ENDINGS = (".csv", ".tsv")


@dataclass(frozen=True)
class ReadDocument:
    """A text that may answer a question: a page, a file, or what is below a heading of one."""

    title: str
    source: str
    about: str
    """Author, date and address, or path."""
    text: str
    is_note: bool = False
    """Whether it is the user's own: a list's item or a table's row may answer, too."""
    columns: str = ""
    """The first line of a text that is one table, which names its columns; each further line is a row."""

    def sentences(self) -> list[str]:
        """Return the sentences that can be quoted, each once."""
        if self.columns:
            found = [line.strip() for line in self.text.splitlines()]
        else:
            text = unwrapped(self.text)
            found = notes_of(text) if self.is_note else sentences_of(text)
        return [one for one in dict.fromkeys(found) if is_quotable(one, is_note=self.is_note)]


def as_table(document: ReadDocument, path: str, phrases: Phrases) -> ReadDocument:
    """Return a document whose path says that it is one table as one; any other as it is."""
    columns, _, rows = document.text.partition("\n")
    if not path.lower().endswith(TABLE_ENDINGS) or not rows:
        return document
    about = f"{document.about} | {phrases('columns', names=harmless(columns))}"
    return replace(document, about=about, text=rows, columns=columns.strip())


def parts_of(document: ReadDocument) -> list[ReadDocument]:
    """Return what is below each heading of a document, as documents with these titles."""
    if document.columns:
        return [document]
    found: list[ReadDocument] = []
    title, lines = document.title, list[str]()
    for line in [*document.text.splitlines(), "# "]:
        if line.startswith("#"):
            found += [replace(document, title=title, text="\n".join(lines))] if lines else []
            title, lines = " ".join(line.strip("# ").split()), []
        else:
            lines.append(line)
    return found


@dataclass(frozen=True)
class FoundSentence(Candidate):
    """A sentence of a document."""

    document: ReadDocument


def passages_about(
    documents: Iterable[ReadDocument], question: str, *, follows_names: bool = False
) -> list[FoundSentence]:
    """Return the passages about a question, best first.

    With `follows_names`, then those about names that the best ones brought: the second step of a question in two.
    """
    asked = set(words_of(question))
    passages = [one for document in documents for one in _passages_of(document)]
    first = _with_own_words(passages, relevant(passages, words_of(question)), asked)[:MAX_PASSAGES]
    if not follows_names:
        return [passages[index] for index in first]
    if not first or max(covered(passages, asked)) >= ANSWERED:
        return [passages[index] for index in first]
    new = {word for index in first[:HOP_BASE] for word in words_of(" ".join(names_in(passages[index].text)))} - asked
    holders = Counter(word for one in passages for word in new & set(words_of(one.whole)))
    rare = [word for word in new if holders[word] <= MAX_HOLDERS]
    second = [index for _, index in rank_by_query([one.whole for one in passages], rare) if index not in first]
    return [passages[index] for index in [*first, *second[:HOP_PASSAGES]]]


def _with_own_words(passages: Sequence[FoundSentence], chosen: Sequence[int], asked: set[str]) -> list[int]:
    """Leave out passages that share with the question only what they stand under.

    A page's title makes none of its sentences an answer, and the names of its columns no row of a table in which
    another row has a word of the question. Items of the user's own notes may be answers by their heading alone.
    """
    own = {index for index in chosen if asked & set(words_of(passages[index].text))}
    tables = {passages[index].document for index in own if passages[index].document.columns}
    by_heading = {index for index in chosen if passages[index].document.is_note}
    return [
        index for index in chosen if index in own or (index in by_heading and passages[index].document not in tables)
    ]


def _passages_of(document: ReadDocument) -> list[FoundSentence]:
    """Return the sentences of a document with what they stand under: its title, and of a row the head of its table.

    The title itself is none of them.
    """
    heads = row_heads(unwrapped(document.text)) if document.is_note and not document.columns else {}
    return [
        FoundSentence(". ".join(filter(None, (document.title, heads.get(text, document.columns)))), text, document)
        for text in document.sentences()
        if text.casefold() != document.title.casefold()
    ]


def sections_of(passages: Sequence[FoundSentence], phrases: Phrases) -> list[tuple[str, str]]:
    """Return the title and the text of a section for each document, in the order of their best passages."""
    groups: dict[ReadDocument, list[NoteQuote]] = {}
    for one in passages:
        if made := quote(one.text, one.document.source):
            groups.setdefault(one.document, []).append(made)
    return [(one.title, document_section(one.title, one.about, quotes, phrases)) for one, quotes in groups.items()]


def keep(sections: Sequence[tuple[str, str]], gaps: Sequence[str], folder: str, phrases: Phrases) -> Script:
    """Write the sections, and what is not known into a file of its own; returns a summary."""
    files = {f"{number:02d}-{slug(title) or 'text'}.md": text for number, (title, text) in enumerate(sections, 1)}
    if gaps:
        files["not-known.md"] = "\n".join([f"# {phrases('unknown')}", "", *unknown(gaps, phrases)]) + "\n"
    calls = [writing(f"{folder}{name}", content) for name, content in files.items()]
    if calls:
        yield Step(calls=tuple(calls))
    titles = "; ".join(title for title, _ in sections)
    summary = f"Something about it is in {titles or 'no document'}."[:1400]
    return f"{summary}\nNot known: {'; '.join(gaps)[:700]}" if gaps else summary


def query_words(question: str) -> str:
    """Return a question as a search query: on one line, with a limited number of words."""
    return " ".join(single_line(question).split()[:MAX_QUERY_WORDS])[:300]


def search_web(state: ScriptState, wish: Wish, folder: str) -> Script:
    """Search the web for the question, then read the best results."""
    phrases, words = Phrases(wish.language), query_words(wish.question)
    (answer,) = yield Step(calls=(Ask("web_search", {"query": words, "max_results": MAX_RESULTS}),))
    hits = [] if answer.is_error else listed_hits(answer)
    if not hits:
        why = short_reason(answer.text) if answer.is_error else phrases("no_result")
        return (yield from keep([], [phrases("web_failed", words=harmless(words), why=why)], folder, phrases))
    urls = [] if state.is_hurried else [hit.url for hit in hits[:MAX_PAGES]]
    return (yield from read_pages(wish, urls, folder, hits))


def read_pages(
    wish: Wish, urls: Sequence[str], folder: str, hits: Sequence[ListedHit] = (), known_gaps: Sequence[str] = ()
) -> Script:
    """Read pages side by side, and keep what they and the other results say about the question."""
    phrases, chosen = Phrases(wish.language), list(dict.fromkeys(urls))[:MAX_PAGES]
    answers: Sequence[ToolAnswer] = ()
    if chosen:
        answers = yield Step(calls=tuple(Ask("read_webpage", {"url": url}) for url in chosen))
    pages = {url: None if one.is_error else page_read(one) for url, one in zip(chosen, answers, strict=True)}
    gaps = [*known_gaps]
    for (url, page), answer in zip(pages.items(), answers, strict=True):
        gaps += page_gaps(url, page, answer, phrases)
    documents = [ReadDocument(page.title, page.source, page.about, page.text) for page in pages.values() if page]
    documents += [ReadDocument(hit.title, hit.source, hit.url, hit.snippet) for hit in hits if not pages.get(hit.url)]
    is_whole = bool(URL.search(wish.question)) and not wish.has_subject
    found = gist_of(documents) if is_whole else passages_about(documents, wish.subject)
    return (yield from keep(sections_of(found, phrases), gaps, folder, phrases))


def gist_of(documents: Iterable[ReadDocument], count: int = GIST_SENTENCES) -> list[FoundSentence]:
    """Return the sentences of each document that say most about it, up to a number; of a short note the first ones."""
    return [FoundSentence(one.title, text, one) for one in documents for text in _gist_of(one, count)]


def _gist_of(document: ReadDocument, count: int) -> list[str]:
    best = best_sentences(document.text, document.title, count)
    if len(best) == count or not document.is_note:
        return best
    return [text for text in document.sentences() if text.casefold() != document.title.casefold()][:count]


def page_gaps(title: str, page: ReadPage | None, answer: ToolAnswer, phrases: Phrases) -> list[str]:
    """Return what a reader should know about a page's completeness."""
    if page is None:
        return [phrases("no_document", title=harmless(title), why=short_reason(answer.text))]
    gaps = [phrases("flagged", title=page.title, flags=page.flags)] if page.flags else []
    if page.read_chars < page.all_chars:
        gaps.append(phrases("part_read", title=page.title, read=page.read_chars, all=page.all_chars))
    return gaps


USER_FILE = re.compile(r"`([^`\n]+)` \[(S\d+)\]")
MAX_CONTEXT_FILES = 40
MAX_LINES = 12


def context_files(task: TaskData) -> list[str]:
    """Return the paths of the files that come with a task."""
    return list(dict.fromkeys(path for path, _ in task.files))[:MAX_CONTEXT_FILES]


def folder_in(task: TaskData) -> str:
    """Return the folder that a task's files belong in, with a slash at its end; empty when it names none."""
    return f"{task.folder}/" if task.folder else ""


def analyze(state: ScriptState) -> Script:
    """Find the passages of the user's files that the task names; without any, keep notes of other helpers' files."""
    sources = dict(USER_FILE.findall(state.task.words))
    if not sources:
        return (yield from take_notes(state))
    wish = understand_task(state.task)
    phrases = Phrases(wish.language)
    texts = yield from read_files(state, list(sources))
    files = [as_table(_file_of(path, sources[path], text), path, phrases) for path, text in texts.items()]
    if wish.has_subject:
        documents = [part for one in files for part in parts_of(one)]
        found = passages_about(documents, wish.subject, follows_names=True)
    else:
        found = gist_of(files)
    gaps = [phrases("no_text", title=path) for path in sources if path not in texts]
    gaps += [phrases("lines_cut", title=path) for path in texts if path in state.cut_files]
    return (yield from keep(sections_of(found, phrases), gaps, folder_in(state.task) or "passages/", phrases))


def _file_of(path: str, source: str, text: str) -> ReadDocument:
    """Return a file of the user's, by the name that the user knows and without the engine's facts above its text."""
    is_parsed = text.startswith("---\noriginal: ")
    given = path.removesuffix(".md") if is_parsed else path
    own_words = without_frontmatter(text) if is_parsed else text
    return ReadDocument(given.removeprefix("inputs/"), source, given, own_words, is_note=True)


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
    yield Step(calls=(writing(path, content),))
    return f"{len(chosen)} cited lines from {len(texts)} files are in {path}, chosen by shared words."
