"""What the files of a run hold, for its store: read in pieces, each kept once, and large ones in an object store."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from explorer.fleet.folder_changes import FileVersion, digest_of, mode_of, pieces_of
from explorer.schema.errors import ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Opened


LARGE_BYTES = 32 * 1024 * 1024
"""The size above which a file goes to the object store, where there is one."""
MAX_BYTES = 1024 * 1024 * 1024
"""The size above which a file is not kept without an object store."""
UPLOAD_BYTES = 16 * 1024 * 1024
"""Pieces of together so many bytes are written before the batch that they belong to."""
ATTEMPTS = 3
TOO_LARGE = "it has {count} bytes; without an object store {limit} are kept (EXPLORER_FLEET_OBJECTS)"
UNREADABLE = "it could not be read: {reason}"
CHANGED = "it changed each time it was read"


class ObjectStore(Protocol):
    """Keeps large contents under names."""

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Keep a content; one of that name is replaced.

        Raises:
            OSError: It refused.
        """
        ...

    def get(self, name: str) -> Iterator[bytes]:
        """Yield a content in pieces.

        Raises:
            OSError: It is not there, or the store does not answer.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a content, if it is there.

        Raises:
            OSError: The store refused, or does not answer.
        """
        ...


@dataclass(frozen=True)
class Content:
    """A piece of a file, or the name in the object store under which a whole one is."""

    content: bytes
    place: str = ""


@dataclass
class RunContents:
    """Reads the files of one run. Only its own methods change it."""

    folder: Path
    run_id: str
    upload: Callable[[Mapping[str, Content]], None]
    """Writes contents before their batch."""
    objects: ObjectStore | None = None
    stored: set[str] = field(default_factory=set[str])
    """Digests of what is in the database already."""
    large_bytes: int = LARGE_BYTES
    max_bytes: int = MAX_BYTES
    _new: dict[str, Content] = field(default_factory=dict[str, Content])

    def take_new(self) -> dict[str, Content]:
        """Return what was read and is not in the database yet, and count it as written."""
        taken, self._new = self._new, {}
        self.stored |= taken.keys()
        return taken

    def version_of(self, path: str) -> FileVersion:
        """Read a file; its new pieces wait for `take_new`."""
        try:
            size = (self.folder / path).lstat().st_size
            if size > self.large_bytes and self.objects is not None:
                return self._as_object(path, self.objects)
            if size > self.max_bytes:
                return FileVersion(path=path, bytes=size, problem=TOO_LARGE.format(count=size, limit=self.max_bytes))
            return self._in_pieces(path)
        except FileNotFoundError:
            return FileVersion(path=path)
        except OSError as error:
            return FileVersion(path=path, problem=UNREADABLE.format(reason=error.strerror or error))

    def _in_pieces(self, path: str) -> FileVersion:
        whole, size = hashlib.sha256(), 0
        digests: list[str] = []
        for piece in pieces_of(self.folder, path):
            whole.update(piece)
            size += len(piece)
            digest = digest_of(piece) if digests or size != len(piece) else whole.hexdigest()
            digests.append(digest)
            if digest not in self.stored:
                self._new[digest] = Content(piece)
            if sum(len(one.content) for one in self._new.values()) >= UPLOAD_BYTES:
                self.upload(self.take_new())
        mode = mode_of(self.folder, path)
        several = tuple(digests) if len(digests) > 1 else ()
        return FileVersion(path=path, sha256=whole.hexdigest(), bytes=size, mode=mode, pieces=several)

    def _as_object(self, path: str, objects: ObjectStore) -> FileVersion:
        for _ in range(ATTEMPTS):
            digest = _digest(pieces_of(self.folder, path))
            place = f"{self.run_id}/{digest}"
            sent = _Counted(pieces_of(self.folder, path))
            if digest not in self.stored:
                objects.put(place, iter(sent))
            else:
                sent.read_all()
            if sent.digest == digest:
                if digest not in self.stored:
                    self._new[digest] = Content(b"", place)
                return FileVersion(path=path, sha256=digest, bytes=sent.size, mode=mode_of(self.folder, path))
        return FileVersion(path=path, problem=CHANGED)


@dataclass
class _Counted:
    """Passes pieces on, and computes their digest and size."""

    pieces: Iterator[bytes]
    size: int = 0
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self._hash.update(piece)
            self.size += len(piece)
            yield piece

    def read_all(self) -> None:
        """Read to the end."""
        for _ in self:
            pass

    @property
    def digest(self) -> str:
        """Return the digest of what was passed on."""
        return self._hash.hexdigest()


def _digest(pieces: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


PACKAGE = "obstore"
SCHEMES = frozenset({"s3", "gs", "az", "file", "memory"})
FORM = "set EXPLORER_FLEET_OBJECTS to s3://BUCKET/PREFIX, gs://..., az://... or file:///FOLDER"


def open_objects(address: str) -> ObjectStore | None:
    """Return the object store at an address; None for an empty one.

    Raises:
        ConfigError: The address cannot be used, or the package is missing.
    """
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or "@" in parts.netloc or parts.query:
        # Keys do not belong into an address: it is shown in logs and errors.
        raise ConfigError("the address of the object store cannot be used", hint=FORM)
    if find_spec(PACKAGE) is None:
        raise ConfigError("the package obstore is not installed", hint="pip install 'explorer[fleet,objects]'")
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
    from obstore.store import LocalStore, from_url  # noqa: PLC0415 - the same

    try:
        is_folder = parts.scheme == "file"
        opened = LocalStore.from_url(address, mkdir=True) if is_folder else from_url(address)
    except (BaseError, ValueError, OSError) as error:
        raise ConfigError(f"the object store cannot be used: {_first_line(error)}", hint=FORM) from error
    return Objects(opened)


@dataclass(frozen=True)
class Objects:
    """An open object store."""

    store: "Opened"

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Keep a content; one of that name is replaced.

        Raises:
            OSError: The store refused, or does not answer.
        """
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import BaseError  # noqa: PLC0415 - the same

        try:
            obstore.put(self.store, name, pieces)
        except BaseError as error:
            raise OSError(0, f"the object store refused: {_first_line(error)}") from error

    def get(self, name: str) -> Iterator[bytes]:
        """Yield a content in pieces.

        Raises:
            OSError: It is not there, or the store does not answer.
        """
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import BaseError  # noqa: PLC0415 - the same

        try:
            for piece in obstore.get(self.store, name):
                yield bytes(piece)
        except (BaseError, FileNotFoundError) as error:
            raise OSError(0, f"the object store does not give {name}: {_first_line(error)}") from error

    def remove(self, name: str) -> None:
        """Remove a content, if it is there.

        Raises:
            OSError: The store refused, or does not answer.
        """
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import BaseError  # noqa: PLC0415 - the same

        try:
            with suppress(FileNotFoundError):
                obstore.delete(self.store, name)
        except BaseError as error:
            raise OSError(0, f"the object store does not remove {name}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
