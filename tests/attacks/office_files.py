"""Office files and books that are bombs, that reach for files of the user, or that would end who reads them.

They are read as the engine reads a file: by its own parser. The control is a reader that trusts the file.
"""

import asyncio
import base64
import io
import posixpath
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.sax import make_parser
from xml.sax.handler import ContentHandler, feature_external_ges

import mammoth

from attacks.attack import Attack
from documents.parsing.office_samples import OFFICE, book, far_cell, memo_of, memo_xml, packed
from explorer.documents.parsing.document import UNPACKS_TO_TOO_MUCH
from explorer.documents.parsing.kinds import kind_of
from explorer.documents.parsing.office_files import MAX_UNPACKED_BYTES
from explorer.documents.parsing.parser import Parser
from explorer.schema.errors import ToolError

SECRET = "sesame-of-the-user"
LAUGHS = 40_000
ZEROS = b"\0" * 1_000_000
NOBODY_READS = """
import sys
from python_calamine import CalamineWorkbook
CalamineWorkbook.from_path(sys.argv[1]).get_sheet_by_index(0)
"""


def engine_reads(body: bytes) -> str:
    """What the engine makes of a file: its text, or the problem."""

    async def read() -> str:
        async with Parser() as parser:
            try:
                return (await parser.parse(kind_of(body), body, url="file:x")).text
            except ToolError as error:
                return f"problem: {error.message}"

    return asyncio.run(read())


def _secret(folder: Path) -> Path:
    path = folder / "secret.txt"
    path.write_text(SECRET)
    return path


def _bomb() -> bytes:
    """A Word file of half a megabyte that unpacks to more than the limit."""
    with zipfile.ZipFile(file := io.BytesIO(memo_of(memo_xml("bomb"))), "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/a.xml", ZEROS * (MAX_UNPACKED_BYTES // len(ZEROS) + 1))
    return file.getvalue()


def _is_unpacked_by_engine(_folder: Path) -> bool:
    return UNPACKS_TO_TOO_MUCH not in engine_reads(_bomb())


def _is_unpacked(_folder: Path) -> bool:
    with zipfile.ZipFile(io.BytesIO(_bomb())) as archive, archive.open("word/media/a.xml") as file:
        return sum(len(piece) for piece in iter(partial(file.read, 1_000_000), b"")) > MAX_UNPACKED_BYTES


def _nested(depth: int = 3) -> bytes:
    """A Word file with a bomb in an archive in an archive."""
    inner = packed({"first": b"", "zeros": ZEROS})
    for _ in range(depth):
        inner = packed({"first": b"", "archive.zip": inner})
    return memo_of(memo_xml("outer"), more={"word/embeddings/a.zip": inner})


def _all_unpacked(body: bytes) -> bytes:
    """What a reader finds that opens archives in archives."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        files = [archive.read(name) for name in archive.namelist()]
    return b"".join(_all_unpacked(file) if file.startswith(b"PK\x03\x04") else file for file in files)


def _laughing(declared: str, text: str, encoding: str = "utf-8") -> bytes:
    return memo_of(memo_xml(text, f"<!DOCTYPE w [{declared}]>", encoding))


def _billion() -> bytes:
    """Entities of entities: small, and a hundred times as long when read."""
    entities = [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha" * 50}">' for n in range(4)]
    return _laughing("".join(entities), "&a3;")


def _quadratic(encoding: str) -> bytes:
    """One long entity, repeated: too little for the XML library's own alarm."""
    return _laughing(f'<!ENTITY a "{"ha" * 500}">', "&a;" * 100, encoding)


def _is_expanded_by_engine(_folder: Path, make: Callable[[], bytes]) -> bool:
    return "hahaha" in engine_reads(make())


def _html(body: bytes) -> str:
    """What the library makes of a file that it trusts."""
    found = mammoth.convert_to_html(io.BytesIO(body), external_file_access=True)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - not annotated there
    return str(found.value)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the same


def _is_expanded(_folder: Path, make: Callable[[], bytes]) -> bool:
    return len(_html(make())) > LAUGHS


def _reaching(secret: Path) -> bytes:
    return _laughing(f'<!ENTITY a SYSTEM "{secret.as_uri()}">', "&a;")


class _Words(ContentHandler):
    words = ""

    def characters(self, content: str) -> None:
        self.words += content


def _trusting_xml(folder: Path) -> bool:
    with zipfile.ZipFile(io.BytesIO(_reaching(_secret(folder)))) as archive:
        document = archive.read("word/document.xml")
    handler = _Words()
    parser = make_parser()  # noqa: S317 - that it is not safe is the point
    parser.setFeature(feature_external_ges, True)  # noqa: FBT003 - its own interface
    parser.setContentHandler(handler)
    parser.parse(io.BytesIO(document))
    return SECRET in handler.words


def _linking(secret: Path) -> bytes:
    """A Word file with a picture that is a file of the user."""
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    picture = (
        f"<wp:inline xmlns:wp='{drawing}/wordprocessingDrawing'><a:graphic xmlns:a='{drawing}/main'><a:graphicData>"
        f"<pic:pic xmlns:pic='{drawing}/picture'><pic:blipFill><a:blip xmlns:r='{OFFICE}' r:link='x'/></pic:blipFill>"
        "</pic:pic></a:graphicData></a:graphic></wp:inline>"
    )
    xml = memo_xml("@").replace(b"<w:t>@</w:t>", f"<w:drawing>{picture}</w:drawing><w:t>after</w:t>".encode())
    target = f"<Relationship Id='x' Type='{OFFICE}/image' Target='{secret.as_uri()}' TargetMode='External'/>"
    return memo_of(xml, target)


def _trusting_links(folder: Path) -> bool:
    found = re.search(r"base64,([^\"]+)", _html(_linking(_secret(folder))))
    return bool(found) and base64.b64decode(found[1]).decode() == SECRET


def _climbing(secret: Path) -> bytes:
    """A book whose list of chapters names a file outside, which the archive has an entry for, too."""
    return book([b"<p>one</p>"], [f"{'../' * 40}{secret.as_posix().lstrip('/')}"])


def _joined_names(folder: Path) -> bool:
    """Follow the chapters of a book from a folder, as a reader does that unpacks first."""
    with zipfile.ZipFile(io.BytesIO(_climbing(_secret(folder)))) as archive:
        names = re.findall(r"href='([^']+)'", archive.read("OEBPS/book.opf").decode())
    paths = [Path(posixpath.join(folder, "OEBPS", name)) for name in names]
    return any(path.resolve().is_file() and path.resolve().read_text() == SECRET for path in paths)


def _escaping(folder: Path) -> bytes:
    return memo_of(memo_xml("fine"), more={f"{'../' * 40}{folder.as_posix().lstrip('/')}/planted.xml": b"<a/>"})


def _engine_plants(folder: Path) -> bool:
    engine_reads(_escaping(folder))
    return (folder / "planted.xml").exists()


def _unpacker_plants(folder: Path) -> bool:
    with zipfile.ZipFile(io.BytesIO(_escaping(folder))) as archive:
        for name in archive.namelist():
            if name.endswith("planted.xml"):
                Path(posixpath.join(folder, name)).resolve().write_bytes(archive.read(name))
    return (folder / "planted.xml").exists()


def _engine_ends(_folder: Path) -> bool:
    """Read a sheet as large as a sheet can be; the engine gives a reason, and reads the next file."""
    return not engine_reads(far_cell()).startswith("problem:") or engine_reads(memo_of(memo_xml("next"))) != "next"


def _reader_ends(folder: Path) -> bool:
    (folder / "far.xlsx").write_bytes(far_cell())
    command = [sys.executable, "-c", NOBODY_READS, str(folder / "far.xlsx")]
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


ATTACKS = [
    Attack("zip-bomb", "A small Word file unpacks to 300 MB.", _is_unpacked_by_engine, _is_unpacked),
    Attack(
        "archive-in-archive",
        "A Word file has a bomb in an archive in an archive.",
        lambda _: engine_reads(_nested()) != "outer",
        lambda _: ZEROS in _all_unpacked(_nested()),
    ),
    *(
        Attack(name, tried, partial(_is_expanded_by_engine, make=make), partial(_is_expanded, make=make))
        for name, tried, make in (
            ("billion-laughs", "The text of a Word file is an entity of entities.", _billion),
            ("quadratic-entities", "It repeats one long entity.", partial(_quadratic, "utf-8")),
            (
                "entities-in-utf-16",
                "The same in UTF-16, where a search for `<!ENTITY` finds none.",
                partial(_quadratic, "utf-16"),
            ),
        )
    ),
    Attack(
        "external-entity",
        "An entity in a Word file is a file of the user.",
        lambda folder: SECRET in engine_reads(_reaching(_secret(folder))),
        _trusting_xml,
    ),
    Attack(
        "linked-picture",
        "A picture in a Word file is a link to a file of the user.",
        lambda folder: engine_reads(_linking(_secret(folder))) != "after",
        _trusting_links,
    ),
    Attack(
        "chapter-outside",
        "A chapter of a book is a file outside of it.",
        lambda folder: SECRET in engine_reads(_climbing(_secret(folder))),
        _joined_names,
    ),
    Attack("name-outside", "A file in a Word file is named as one outside.", _engine_plants, _unpacker_plants),
    Attack("huge-sheet", "A sheet of two cells has 17 billion between them.", _engine_ends, _reader_ends),
]
