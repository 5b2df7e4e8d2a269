"""A folder of a user's, and an index over it, for tests."""

import io
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from explorer.documents.corpus.folder import FolderLimits
from explorer.documents.corpus.index import Corpus, Options, Progress
from explorer.documents.parsing.document import Document
from explorer.documents.parsing.parser import DocumentParser, TrustingParser
from explorer.schema.errors import ToolError
from explorer.workspace.user_key import UserKey

NOTES = {
    "harbour/ropes.md": "# Ropes of the harbour\n\nThe ropes cost 4,100 euros a year. Each rope is replaced in May.",
    "harbour/cranes.txt": "Cranes\n\nThe large crane lifts forty tonnes. It was painted in 2019 by Ada Example.",
    "kitchen.md": "# Kitchen rules\n\nNobody leaves cups in the sink. The café account pays for milk.",
    "数据库.md": "# 数据库维护\n\n数据库的维护成本在五月下降了百分之六十一。维护者休息了两周。",
}


KEY = UserKey(b"k" * 32)


class CountingParser:
    """Parses in this process and counts what it is asked for; can be told to fail."""

    def __init__(self, fail: Callable[[bytes], bool] = lambda _body: False) -> None:
        self.asked: list[str] = []
        self.fail = fail
        self._parser = TrustingParser()

    async def prepare(self, kind: str) -> None:
        """Nothing: there is no process."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """A document, or the failure asked for."""
        self.asked.append(url)
        if self.fail(body):
            raise ToolError("it took too long")
        return await self._parser.parse(kind, body, url=url, content_type=content_type)


def write(folder: Path, files: dict[str, str]) -> Path:
    """Files with their folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with these pages, each a few lines."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.setTitle(title)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 760 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


@asynccontextmanager
async def opened(
    folder: Path,
    parser: DocumentParser | None = None,
    *,
    index: Path | None = None,
    bounds: FolderLimits | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> AsyncGenerator[Corpus]:
    """A corpus over a folder; its index stands beside the folder."""
    place = index or folder.parent / "index.sqlite"
    options = Options(bounds=bounds or FolderLimits(), on_progress=on_progress, key=KEY)
    async with Corpus(folder, place, parser or CountingParser(), options) as corpus:
        yield corpus


async def paths(corpus: Corpus, question: str, glob: str = "") -> list[str]:
    """The paths that a search gives, best first."""
    return [hit.path for hit in (await corpus.search(question, glob=glob)).hits]
