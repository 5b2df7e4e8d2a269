"""Files given with a question: texts as they are, HTML and PDF kept as given and, beside that, as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.documents.corpus.database import StoredDocument
from explorer.documents.corpus.folder import MAX_FILE_BYTES, FoundFile
from explorer.documents.corpus.reading import as_utf8, read_file, readable_kind
from explorer.documents.parsing.kinds import HTML, PDF
from explorer.documents.parsing.parser import DocumentParser
from explorer.schema.errors import ConfigError, ToolError
from explorer.text.frontmatter import read_frontmatter, with_frontmatter
from explorer.workspace.source_store import SourceDraft

PARSED_SUFFIX = ".md"
"""Of the text beside a file that is none."""
ORIGINAL = "original"
"""The field of a parsed text's frontmatter that names the file it was made of."""
FACTS = ("title", "author", "published", "language")


@dataclass(frozen=True)
class InputFile:
    """A file of the user's, by the name it gets in the run."""

    name: str
    body: bytes
    kind: str

    @property
    def is_parsed(self) -> bool:
        """Whether its text is made by a parser."""
        return self.kind in {HTML, PDF}


def read_inputs(paths: Iterable[Path], given: Mapping[str, bytes] | None = None) -> list[InputFile]:
    """The user's files, none with another's name; `given` are those that are not on disk, by name.

    Raises:
        ConfigError: One cannot be read, is too big, or holds no text.
    """
    inputs: list[InputFile] = []
    taken: set[str] = set()
    bodies = [(path, _body(path)) for path in paths] + [(Path(name), body) for name, body in (given or {}).items()]
    for path, body in bodies:
        kind = readable_kind(body, path.name)
        if not kind:
            raise ConfigError(f"{path} is neither text nor HTML nor PDF", hint="convert it to one of these first")
        one = InputFile(_free_name(path.name, taken), body, kind)
        taken |= {one.name, f"{one.name}{PARSED_SUFFIX}"} if one.is_parsed else {one.name}
        inputs.append(one)
    return inputs


def _body(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ConfigError(
                f"{path} has {size} bytes; the limit is {MAX_FILE_BYTES}",
                hint="split it, or give the part that matters",
            )
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint="give a text, HTML or PDF file: --file PATH"
        ) from error


def _free_name(name: str, taken: set[str]) -> str:
    """The name itself, unless it or that of its parsed text is another's."""
    number, free = 1, name
    while free in taken or f"{free}{PARSED_SUFFIX}" in taken:
        number += 1
        free = f"{number}-{name}"
    return free


async def parsed_texts(inputs: Iterable[InputFile], parser: DocumentParser) -> dict[str, str]:
    """What agents can read: each file's text under its name, that of HTML and PDF under a name of its own.

    Raises:
        ConfigError: A file has no text that can be read.
    """
    return {_text_name(one): await _text(one, parser) for one in inputs}


async def _text(one: InputFile, parser: DocumentParser) -> str:
    if not one.is_parsed:
        return as_utf8(one.body).decode("utf-8", "replace")
    try:
        document = await read_file(parser, one.body, FoundFile(one.name, one.name, len(one.body), 0, 0))
    except ToolError as error:
        raise ConfigError(
            f"{one.name} cannot be used: {error.message}", hint="convert it to text or markdown first"
        ) from error
    return _with_head(one, document)


def _text_name(one: InputFile) -> str:
    return f"{one.name}{PARSED_SUFFIX}" if one.is_parsed else one.name


def _with_head(one: InputFile, document: StoredDocument) -> str:
    facts = {name: getattr(document, name) for name in FACTS}
    known = {name: value for name, value in facts.items() if value}
    flags = {"flags": list(document.flags)} if document.flags else {}
    return with_frontmatter({ORIGINAL: one.name, **known, **flags}, document.text)


def input_drafts(paths: Iterable[str], read_text: Callable[[str], str]) -> dict[str, SourceDraft]:
    """The inputs of a run as sources, by the path agents read: a parsed text stands for the file it was made of."""
    listed = list(paths)
    drafts = {path: _draft(path, read_text(path)) for path in listed if path.endswith(PARSED_SUFFIX)}
    parsed = {original for _, original in drafts.values()}
    rest = [path for path in listed if path not in drafts and path not in parsed]
    drafts |= {path: _draft(path, read_text(path)) for path in rest}
    return {path: drafts[path][0] for path in listed if path in drafts and path not in parsed}


def _draft(path: str, text: str) -> tuple[SourceDraft, str]:
    """A file as a source, and the path of the original when its text was made by a parser."""
    folder, _, name = path.rpartition("/")
    head, body = read_frontmatter(text)
    original = str(head.get(ORIGINAL, ""))
    if f"{original}{PARSED_SUFFIX}" != name:
        return SourceDraft(url=f"file:{path}", title=name, kind="file", via="file", text=text), ""
    place = f"{folder}/{original}"
    flags = head.get("flags")
    draft = SourceDraft(
        url=f"file:{place}",
        title=str(head.get("title", original)),
        kind="file",
        via="file",
        author=str(head.get("author", "")),
        published=str(head.get("published", "")),
        language=str(head.get("language", "")),
        flags=tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - YAML
        text=body,
    )
    return draft, place
