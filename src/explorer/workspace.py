"""A run's folder, and the only way to it: every path is walked descriptor by descriptor, beneath the folder.

No `..`, no absolute path, no symbolic link, no device or pipe gets a caller out of, or the engine stuck in, the
folder, also when someone exchanges folders and links while we walk. Agents may read `.explorer/`, the engine's own
folder, but never write it.
"""

import asyncio
import fnmatch
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import StorageError, ToolError
from explorer.events import FileChange, WrittenFile

ENGINE_FOLDER = ".explorer"
MAX_FILE_BYTES = 8 * 1024 * 1024
"""Of one file, read or written whole."""
MAX_PATH_CHARS = 400
MAX_NAME_BYTES = 200
"""Of one file or folder name; the disk takes 255, and a temporary name is longer by some."""
MAX_LISTED = 2_000
TITLE_CHARS = 120
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.tmp")
"""Names of files that are being written; see `_replace`."""
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:")


@dataclass(frozen=True)
class FileInfo:
    """A file of the run, for listings."""

    path: str
    bytes: int
    lines: int


class Workspace:
    """One run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, path: str) -> asyncio.Lock:
        """The lock to hold while reading and then writing a file, so that no edit is lost."""
        return self._locks.setdefault("/".join(_parts(path)), asyncio.Lock())

    def read_bytes(self, path: str) -> bytes:
        """A file's content.

        Raises:
            ToolError: It does not exist, is not a plain file of this folder, or is too big.
        """
        with self._opened_parent(path) as (parent, name):
            return _read(parent, name, path)

    def read_text(self, path: str) -> str:
        """A text file's content; a binary file is refused."""
        content = self.read_bytes(path)
        if b"\0" in content[:8192]:
            raise ToolError(f"{path} is a binary file ({len(content)} bytes); it cannot be read as text")
        return content.decode("utf-8", "replace")

    def digest(self, path: str) -> str:
        """sha256 of a file, empty when there is none: what `FileChange` compares."""
        try:
            return sha256(self.read_bytes(path))
        except ToolError:
            return ""

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Replace a file's content for an agent: a reader sees the old or the new one, never a half.

        Raises:
            ToolError: The path is not the agent's to write, or the content is too big.
        """
        refuse_engine_folder(path)
        return self.write_own(path, _readable(text))

    def write_own(self, path: str, text: str) -> WrittenFile:
        """The same for the engine itself, which may write `.explorer/`.

        Raises:
            StorageError: The disk refused.
        """
        content = text.encode("utf-8", "replace")
        if len(content) > MAX_FILE_BYTES:
            raise ToolError(f"{path} would have {len(content)} bytes; the limit is {MAX_FILE_BYTES}: split it")
        try:
            with self._opened_parent(path, create=True) as (parent, name):
                _replace(parent, name, content)
        except OSError as error:
            raise StorageError(
                f"{path} could not be written: {error.strerror}; what stood there is unchanged"
            ) from error
        return describe(path, text)

    def remove(self, path: str) -> None:
        """Remove a plain file, if it is there."""
        if self.exists(path):
            with self._opened_parent(path) as (parent, name):
                os.unlink(name, dir_fd=parent)
                os.fsync(parent)

    def sweep(self) -> None:
        """Remove what writes left that a crash cut off: nobody reads it, and agents would see it in listings."""
        for folder, _, names in os.walk(self.folder):
            for name in filter(TEMPORARY.fullmatch, names):
                Path(folder, name).unlink(missing_ok=True)

    def foresee(self, path: str, text: str) -> FileChange:
        """The change that writing `text` would make."""
        refuse_engine_folder(path)
        clean = "/".join(_parts(path))
        return FileChange(
            path=clean, before=self.digest(path), after=sha256(_readable(text).encode("utf-8", "replace"))
        )

    def exists(self, path: str) -> bool:
        """Whether a plain file is there."""
        try:
            with self._opened_parent(path) as (parent, name):
                return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (ToolError, OSError):
            return False

    def files(self, path: str = "", pattern: str = "") -> list[FileInfo]:
        """The plain files beneath `path`, sorted; without the engine's own unless asked for by path.

        Raises:
            ToolError: `path` is not a folder of this run.
        """
        root = "" if path.strip() in {"", ".", "./", "/"} else "/".join(_parts(path))
        found: list[FileInfo] = []
        for name in self._walk(root):
            if pattern and not (fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.split("/")[-1], pattern)):
                continue
            try:
                content = self.read_bytes(name)
            except ToolError:
                continue
            found.append(FileInfo(name, len(content), count_lines(content)))
            if len(found) >= MAX_LISTED:
                break
        return found

    def _walk(self, root: str) -> Iterator[str]:
        top = self.folder / root
        if root:
            try:
                with self._opened_parent(root + "/x"):
                    pass
            except ToolError as error:
                raise ToolError(f"there is no folder {root}; list_files without a path shows all files") from error
        for folder, subfolders, names in os.walk(top):
            subfolders.sort()
            inside = Path(folder).relative_to(self.folder).as_posix()
            if inside == "." and ENGINE_FOLDER in subfolders:
                subfolders.remove(ENGINE_FOLDER)
            for name in sorted(names):
                yield name if inside == "." else f"{inside}/{name}"

    @contextmanager
    def _opened_parent(self, path: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """The descriptor of the folder that holds `path`, reached without following any link, and the name in it."""
        *folders, name = _parts(path)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                inner = _enter(descriptor, folder, path, create=create)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, name
        finally:
            os.close(descriptor)


def _readable(text: str) -> str:
    """Without NUL, which would make a text file a binary one that nobody can read back."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def sha256(content: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(content).hexdigest()


def count_lines(content: bytes) -> int:
    """Lines as an editor counts them."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def describe(path: str, text: str) -> WrittenFile:
    """What the journal says about a written file."""
    content = text.encode("utf-8", "replace")
    first = next((line.strip("# \t*-") for line in text.splitlines() if line.strip("# \t*-")), "")
    return WrittenFile(
        path="/".join(_parts(path)),
        title=first[:TITLE_CHARS],
        lines=count_lines(content),
        bytes=len(content),
        sha256=sha256(content),
    )


def refuse_engine_folder(path: str) -> None:
    """Agents read `.explorer/` and never write it."""
    if _parts(path)[0].lower() == ENGINE_FOLDER:
        raise ToolError(f"{path}: the folder {ENGINE_FOLDER}/ is the engine's own; write somewhere else")


def _parts(path: str) -> list[str]:
    """A relative path's components, or a refusal that says what would be right."""
    text = unicodedata.normalize("NFC", path.strip())
    if not text or len(text) > MAX_PATH_CHARS:
        raise ToolError(f"a path needs 1 to {MAX_PATH_CHARS} characters, such as notes/topic.md")
    if text.startswith(("/", "~")) or "\\" in text or WINDOWS_DRIVE.match(text):
        raise ToolError(f"{path!r} is not a path inside this run's folder; use a relative one such as notes/topic.md")
    if any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"} for c in text):
        raise ToolError(f"{path!r} holds invisible or control characters; use plain letters")
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolError(f"{path!r} leaves this run's folder; use a relative path without ..")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise ToolError(f"{path!r} holds a name of over {MAX_NAME_BYTES} bytes; choose a shorter one")
    if not parts:
        raise ToolError(f"{path!r} names the run's folder itself, not a file in it")
    return parts


def _enter(parent: int, folder: str, path: str, *, create: bool) -> int:
    if create:
        try:
            os.mkdir(folder, 0o755, dir_fd=parent)
            os.fsync(parent)
        except FileExistsError:
            pass
        except OSError as error:
            raise ToolError(f"cannot make the folder of {path}: {error.strerror}") from error
    try:
        return os.open(folder, _OPEN | os.O_RDONLY | os.O_DIRECTORY, dir_fd=parent)
    except FileNotFoundError as error:
        raise ToolError(f"there is no file {path}; list_files shows what is there") from error
    except OSError as error:
        raise ToolError(f"{path} cannot be reached: {folder} is not a plain folder ({error.strerror})") from error


def _read(parent: int, name: str, path: str) -> bytes:
    try:
        descriptor = os.open(name, _OPEN | os.O_RDONLY, dir_fd=parent)
    except FileNotFoundError as error:
        raise ToolError(f"there is no file {path}; list_files shows what is there") from error
    except OSError as error:
        raise ToolError(f"{path} cannot be read: it is not a plain file ({error.strerror})") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{path} is not a plain file")
        if status.st_nlink > 1:
            raise ToolError(f"{path} is a hard link; copies are read, links are not")
        if status.st_size > MAX_FILE_BYTES:
            raise ToolError(f"{path} has {status.st_size} bytes; the limit is {MAX_FILE_BYTES}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _replace(parent: int, name: str, content: bytes) -> None:
    """Temporary file, sync, rename, sync: never a half file under the name, never a lost one after."""
    temporary = f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise ToolError(f"{name} is a folder; choose another name")
    except FileNotFoundError:
        pass
    descriptor = os.open(temporary, _OPEN | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise
