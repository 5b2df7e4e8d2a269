"""Tools that search and read the user's own folder.

A search hit stores the whole document as its source, the same text that reading it stores. So one id is one document
however an agent found it, and each quote can be looked up.
"""

from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import Field

from explorer.documents.corpus.passages import page_at
from explorer.schema.messages import JsonObject
from explorer.schema.text_part import TITLE_CHARS, URL_CHARS, TextPart, facts_of, lines_of, numbered, part_at
from explorer.schema.tool import LISTED_KEY, Arguments, SourceDraft, Tool, ToolContext, ToolResult, shown
from explorer.sources.connections import SourceConnections
from explorer.text.rendering import ModelText, block, code, inline, own, render
from explorer.text.sanitize import single_line

if TYPE_CHECKING:  # the index is slow to import, and few runs have a folder
    from explorer.documents.corpus.database import StoredDocument
    from explorer.documents.corpus.index import Corpus
    from explorer.documents.corpus.search import CorpusHit

PAGE_CHARS = 20_000
"""The characters of a document's text per call."""
SNIPPET_CHARS = 400
LISTED_DOCUMENTS = 60
"""The longest list of the folder's documents, in paths."""
TOLD_CHARS = 800
"""The characters of the list of what the index lacks."""
VIA = "corpus"
KIND = "file"
NO_FOLDER = "give a folder: --corpus DIR"
"""The command that makes these tools available."""
Args = TypeVar("Args", bound=Arguments)


class _CorpusTool(Tool[Args]):
    """A tool over the user's folder."""

    is_lookup = True
    timeout_s = None
    """The first call may have to index the folder, which has bounds of its own."""

    def __init__(self, corpus: "Corpus") -> None:
        self._corpus = corpus

    @classmethod
    def connect(cls, connections: SourceConnections) -> Self:
        """Make the tool with the user's folder."""
        assert connections.corpus is not None
        return cls(connections.corpus)

    @classmethod
    def missing(cls, connections: SourceConnections) -> str:
        """Return why the tool is not offered: there is no folder."""
        return "" if connections.corpus else NO_FOLDER


class SearchCorpusArguments(Arguments):
    """Arguments of `search_corpus`."""

    query: str = Field(
        default="", max_length=500, description='Few specific words; "quoted" for a phrase; empty: list the documents'
    )
    max_results: int = Field(default=8, ge=1, le=30)
    glob: str = Field(default="", description="Only these files, e.g. reports/*.pdf")


class SearchCorpusTool(_CorpusTool[SearchCorpusArguments]):
    """`search_corpus`: searches the user's folder."""

    name = "search_corpus"
    description = (
        "Search the documents of the user's own folder, before anything else; read the passage before you cite it."
    )
    arguments = SearchCorpusArguments
    activity = 'searching your folder for "{query}"'
    is_search = True

    async def execute(self, arguments: SearchCorpusArguments, context: ToolContext) -> ToolResult:
        """Search and list the documents; without words, list those that there are."""
        if not arguments.query.strip():
            return await self._listing(arguments.glob)
        found = await self._corpus.search(arguments.query, arguments.max_results, arguments.glob)
        sources = await context.store([_draft(hit.document) for hit in found.hits])
        listed = numbered(sources, found.hits, _entry)
        missing = (await self._corpus.overview()).skipped.described
        body = [listed, f"Not searched: {single_line(missing, TOLD_CHARS)}" if missing else ""]
        relaxed = "No document contains the quoted phrase; these contain some of the words." if found.is_relaxed else ""
        content = render(
            own(
                'Corpus search for "{words}": {shown} of {count} {unit}.',
                words=inline(arguments.query, TITLE_CHARS),
                shown=len(found.hits),
                count=found.documents,
                unit=own("document" if found.documents == 1 else "documents"),
            ),
            own(relaxed),
            own("" if found.hits else "Try other words, or no glob; an empty query lists the documents."),
            block("\n".join(part for part in body if part)),
        )
        hits = [
            {"source": source.id, "title": single_line(hit.title, TITLE_CHARS), "path": hit.path, "offset": hit.offset}
            for source, hit in zip(sources, found.hits, strict=True)
        ]
        metadata = {**shown(len(hits), "document", "documents"), "hits": hits}
        if missing:
            metadata["not_searched"] = single_line(missing, TOLD_CHARS)
        return ToolResult(success=True, content=content, metadata=metadata)

    async def _listing(self, glob: str) -> ToolResult:
        """Return the paths of the folder's documents; this is no lookup, and brings no evidence."""
        paths = await self._corpus.paths(glob)
        listed = paths[:LISTED_DOCUMENTS]
        missing = (await self._corpus.overview()).skipped.described
        more = [f"and {len(paths) - len(listed)} more; a glob shows a part"] if len(paths) > len(listed) else []
        body = [
            *(single_line(path, URL_CHARS) for path in listed),
            *more,
            *([f"Not searched: {single_line(missing, TOLD_CHARS)}"] if missing else []),
        ]
        content = render(
            own(
                "The folder has {count} {unit}.",
                count=len(paths),
                unit=own("document" if len(paths) == 1 else "documents"),
            ),
            block("\n".join(body)),
        )
        metadata: JsonObject = {**shown(len(listed), "document", "documents"), LISTED_KEY: listed, "total": len(paths)}
        return ToolResult(success=True, content=content, metadata=metadata)

    def describe(self, arguments: SearchCorpusArguments) -> str:
        """Return the action for people."""
        return super().describe(arguments) if arguments.query.strip() else "listing the documents of your folder"


class ReadDocumentArguments(Arguments):
    """Arguments of `read_document`."""

    path: str = Field(min_length=1, max_length=4_000, description="As in the results of search_corpus")
    offset: int = Field(default=0, ge=0)


class ReadDocumentTool(_CorpusTool[ReadDocumentArguments]):
    """`read_document`: reads a file of the user's folder."""

    name = "read_document"
    description = f"Read a document of the user's folder, {PAGE_CHARS} characters at a time."
    arguments = ReadDocumentArguments
    activity = "reading {path}"

    async def execute(self, arguments: ReadDocumentArguments, context: ToolContext) -> ToolResult:
        """Return one part of the document."""
        from explorer.documents.corpus.search import modified_date  # noqa: PLC0415 - slow to import

        document = await self._corpus.read(arguments.path)
        part, draft = part_at(document.text, arguments.offset, PAGE_CHARS, document.path), _draft(document)
        (source,) = await context.store([draft])
        known = (own("modified {date}", date=code(modified_date(document))), _pages(document, part))
        content = lines_of(source.id, draft, part, known)
        return ToolResult(success=True, content=content, metadata=facts_of(draft) | part.facts)


def _draft(document: "StoredDocument") -> SourceDraft:
    return SourceDraft(
        url=f"file:{document.path}",
        title=document.title,
        kind=KIND,
        via=VIA,
        author=document.author,
        published=document.published,
        language=document.language,
        text=document.text,
        flags=document.flags,
    )


def _entry(number: int, source_id: str, hit: "CorpusHit") -> str:
    page = f"page {hit.page} of {hit.document.pages}" if hit.page else ""
    named = f"named in {single_line(hit.named_in, TITLE_CHARS)}" if hit.named_in else ""
    facts = [f"file:{single_line(hit.path, URL_CHARS)}", page, f"offset {hit.offset}", named]
    return (
        f"{number}. [{source_id}] {single_line(hit.title, TITLE_CHARS)} ({hit.modified})\n"
        f"   {' | '.join(fact for fact in facts if fact)}\n"
        f"   {single_line(hit.snippet, SNIPPET_CHARS)}"
    )


def _pages(document: "StoredDocument", part: TextPart) -> ModelText:
    starts = document.page_starts
    if not starts:
        return own("")
    first, last = page_at(part.start, starts), page_at(max(part.start, part.end - 1), starts)
    to = own("-{last}", last=last) if last > first else own("")
    return own("page {first}{to} of {pages}", first=first, to=to, pages=document.pages)
