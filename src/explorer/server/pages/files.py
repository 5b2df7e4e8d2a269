"""The files of a run: a tree, a preview of each, who wrote it and from which sources, and the file as it is."""

import asyncio
import csv
import io
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from explorer.observe.provenance import FileOrigin, origins
from explorer.reports.formats.document import IMAGE_KINDS, MAX_IMAGE_BYTES
from explorer.schema.errors import ExplorerError, NotFoundError, ToolError
from explorer.server.feeds import RunFeed
from explorer.server.markdown import markdown_html
from explorer.server.site import OfSite
from explorer.server.views import head_of
from explorer.text.sanitize import Redactor
from explorer.workspace.access import ENGINE_FOLDER, JOURNAL
from explorer.workspace.source_store import SOURCES
from explorer.workspace.workspace import Workspace

MAX_PREVIEW_CHARS = 400_000
MAX_ROWS = 500
MAX_COLUMNS = 60
MARKDOWN = frozenset({".md", ".markdown"})
TABLES = {".csv": ",", ".tsv": "\t"}
TEXT = "text/plain; charset=utf-8"
RAW_POLICY = "default-src 'none'; sandbox"
SOURCE_FILE = re.compile(rf"{re.escape(SOURCES)}/(S\d+)\.md")
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class FileLine:
    """A file in the list."""

    path: str
    bytes: int
    origin: FileOrigin | None
    """Who wrote it; None: no agent did."""


@dataclass(frozen=True)
class FilePreview:
    """What is shown of a file. One of the first four is filled."""

    html: Markup | None = None
    image: str = ""
    """The address of the file as it is."""
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""
    note: str = ""


@router.get("/runs/{run_id}/files")
async def show_files(run_id: str, site: OfSite) -> HTMLResponse:
    """Show all files of a run by folder, with who wrote each."""
    feed = await site.feed(run_id)
    known = await origins_of(site, feed)
    sizes = await asyncio.to_thread(Workspace(feed.folder).sizes)
    folders: dict[str, list[FileLine]] = {}
    for path, size in sorted(sizes.items()):
        folders.setdefault(str(PurePosixPath(path).parent), []).append(FileLine(path, size, known.get(path)))
    return site.page("files.html", run_id=feed.folder.name, head=head_of(feed), folders=folders)


@router.get("/runs/{run_id}/files/{path:path}")
async def show_file(run_id: str, path: str, site: OfSite) -> Response:
    """Show a file: markdown and tables as such, images, all else as text."""
    feed = await site.feed(run_id)
    found = SOURCE_FILE.fullmatch(path)
    if found:
        return Response(status_code=303, headers={"location": f"/runs/{feed.folder.name}/sources/{found[1]}"})
    content = await asyncio.to_thread(content_of, feed, path)
    known = await origins_of(site, feed)
    preview = await asyncio.to_thread(_preview, feed, path, content)
    return site.page(
        "file.html",
        run_id=feed.folder.name,
        head=head_of(feed),
        path=path,
        preview=preview,
        size=len(content),
        origin=known.get(path),
    )


@router.get("/runs/{run_id}/raw/{path:path}")
async def send_file(run_id: str, path: str, site: OfSite) -> Response:
    """Send a file as it is: images as such, all else as text that a browser only stores."""
    feed = await site.feed(run_id)
    content = await asyncio.to_thread(content_of, feed, path)
    if Redactor(site.runs.secrets).is_in(content):
        raise ExplorerError("the file has a key in it, and is not sent", hint="look at it on the machine itself")
    kind = _image_kind(content)
    headers = {"content-security-policy": RAW_POLICY}
    if not kind:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(path).name)
        headers["content-disposition"] = f'attachment; filename="{name}"'
    return Response(content, media_type=f"image/{kind}" if kind else TEXT, headers=headers)


async def origins_of(site: OfSite, feed: RunFeed) -> dict[str, FileOrigin]:
    """Return who wrote each file, by path."""
    records = await site.feeds.records(feed)
    listed = await asyncio.to_thread(origins, records, Workspace(feed.folder))
    return {one.path: one for one in listed}


def content_of(feed: RunFeed, path: str) -> bytes:
    """Return a file of a run; the engine's own folder has nothing for a page but sources and results.

    Raises:
        NotFoundError: There is no such plain file, or it is not shown.
    """
    first = PurePosixPath(path).parts[:1]
    is_shown = first != (ENGINE_FOLDER,) or (path.startswith(f"{ENGINE_FOLDER}/") and path != JOURNAL)
    try:
        if is_shown:
            return Workspace(feed.folder).read_bytes(path)
    except (ToolError, OSError):
        pass
    raise NotFoundError(f"there is no file {path[:200]!r} in this run", hint="see the list of its files")


def _image_kind(content: bytes) -> str:
    return next((kind for head, kind in IMAGE_KINDS.items() if content.startswith(head)), "")


def _preview(feed: RunFeed, path: str, content: bytes) -> FilePreview:
    if _image_kind(content):
        if len(content) <= MAX_IMAGE_BYTES:
            return FilePreview(image=f"/runs/{feed.folder.name}/raw/{path}")
        return FilePreview(note="The image is too large to be shown; download it.")
    if b"\0" in content[:8_000]:
        return FilePreview(note="It is not a text; download it.")
    text = content.decode("utf-8", "replace")
    note = f"The first {MAX_PREVIEW_CHARS:,} of {len(text):,} characters." if len(text) > MAX_PREVIEW_CHARS else ""
    text = text[:MAX_PREVIEW_CHARS]
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in MARKDOWN:
        return FilePreview(html=markdown_html(text), note=note)
    if suffix in TABLES and (rows := _rows(text, TABLES[suffix])):
        return FilePreview(rows=rows, note=note)
    return FilePreview(text=text, note=note)


def _rows(text: str, delimiter: str) -> tuple[tuple[str, ...], ...]:
    """Return the first rows of a table; none where it cannot be read as one."""
    try:
        reader = csv.reader(io.StringIO(text.replace("\0", "")), delimiter=delimiter)
        return tuple(tuple(row[:MAX_COLUMNS]) for _, row in zip(range(MAX_ROWS), reader, strict=False) if row)
    except csv.Error:
        return ()
