"""Indexes of a folder that a stranger prepared: an agent must not read what the folder's files do not say.

Each attempt searches the victim's folder in a workspace that came with an index. The control is the same index in the
hands of who has the victim's key, as if the victim's explorer had made it so.
"""

import asyncio
import hashlib
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from attacks.attack import Attack
from attacks.carried_runs import told_apart
from explorer.documents.corpus.database import Database
from explorer.documents.corpus.index import INDEX_FOLDER, Corpus, Options, index_path
from explorer.documents.parsing.parser import TrustingParser
from explorer.schema.errors import ToolError
from explorer.workspace.user_key import NO_KEY, UserKey, open_key

TRUE, FALSE = "# Output\n\nOutput fell by 3 % in May.", "# Output\n\nOutput rose by 90 % in May."
STRANGER = UserKey(b"s" * 32)
Plant = Callable[[Path, UserKey], None]


def notes(folder: Path) -> Path:
    """The victim's folder."""
    path = folder / "notes"
    path.mkdir(exist_ok=True)
    (path / "output.md").write_text(TRUE)
    return path


def index_of(folder: Path, key: UserKey) -> Path:
    """The index of the victim's folder by its name for a key; none has the name of explorer's first version."""
    return index_path(folder / "workspace", notes(folder), key)


async def searched(folder: Path, index: Path, key: UserKey) -> str:
    """What a search shows and a reader reads."""
    async with Corpus(notes(folder), index, TrustingParser(), Options(key=key)) as corpus:
        try:
            found = await corpus.search("output in May")
            texts = [(await corpus.read(hit.path)).text for hit in found.hits]
        except ToolError as error:
            return error.message
        return "\n".join([*texts, *(hit.snippet for hit in found.hits), *(hit.title for hit in found.hits)])


def made(folder: Path, index: Path, key: UserKey) -> None:
    """Have the index made from the folder by who has a key."""
    asyncio.run(searched(folder, index, key))


def falsify(index: Path) -> None:
    """Put another text into the index for the file, with all sums but the mark right."""
    with closing(sqlite3.connect(index, isolation_level=None)) as database:
        text = FALSE.encode()
        values = (zlib.compress(text), hashlib.sha256(text).hexdigest(), len(FALSE))
        database.execute("UPDATE documents SET text = ?, digest = ?, chars = ?", values)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def sealed(index: Path, key: UserKey) -> None:
    """Give what is in the index the marks of a key."""
    database = Database(index, key)
    database.open()
    for known in database.known().values():
        database.touch(known.file)
    database.close()


def planted(name: str, tried: str, plant: Plant) -> Attack:
    """An attack by an index that is there; it gains if the false text is read."""

    def go(folder: Path, *, is_own: bool) -> bool:
        key = open_key(folder / "state")
        plant(folder, key if is_own else STRANGER)
        return "90 %" in asyncio.run(searched(folder, index_of(folder, key), key))

    return told_apart(name, tried, go, "is_own")


def under_known_name(folder: Path, key: UserKey) -> None:
    """An index under the name that everybody knows."""
    made(folder, index_of(folder, key), key)
    falsify(index_of(folder, key))
    sealed(index_of(folder, key), key)
    if key is STRANGER:
        index_of(folder, key).rename(index_of(folder, NO_KEY))


def under_seen_name(folder: Path, key: UserKey) -> None:
    """An index under the victim's own name for it, which the stranger saw in the workspace."""
    index = index_of(folder, open_key(folder / "state"))
    made(folder, index, key)
    falsify(index)
    sealed(index, key)


def changed_text(folder: Path, key: UserKey) -> None:
    """The victim's own index with another text."""
    victims = open_key(folder / "state")
    index = index_of(folder, victims)
    made(folder, index, victims)
    falsify(index)
    if key is not STRANGER:
        sealed(index, key)


def changed_title(folder: Path, key: UserKey) -> None:
    """The victim's own index with another title."""
    victims = open_key(folder / "state")
    index = index_of(folder, victims)
    made(folder, index, victims)
    with closing(sqlite3.connect(index, isolation_level=None)) as database:
        database.execute("UPDATE documents SET title = 'Output rose by 90 %'")
    if key is not STRANGER:
        sealed(index, key)


def of_other_folder(folder: Path, key: UserKey) -> None:
    """The victim's own index of another folder whose file has the same name, size and times, under this name."""
    victims = open_key(folder / "state")
    other = folder / "workspace" / INDEX_FOLDER / "other.sqlite"
    made(folder, other, victims)
    falsify(other)
    sealed(other, victims)
    other.rename(index_of(folder, victims))
    if key is not STRANGER:
        sealed(index_of(folder, victims), key)


def with_trigger(folder: Path, key: UserKey) -> None:
    """The victim's own index with a trigger that changes each text that is stored."""
    victims = open_key(folder / "state")
    index = index_of(folder, victims)
    made(folder, index, victims)
    with closing(sqlite3.connect(index, isolation_level=None)) as database:
        change = "UPDATE documents SET title = 'Output rose by 90 %'"
        database.execute(f"CREATE TRIGGER grow AFTER INSERT ON passages BEGIN {change}; END")
    (notes(folder) / "output.md").write_text(f"{TRUE} And in June.")
    if key is not STRANGER:
        changed_title(folder, key)


ATTACKS = (
    planted("known-name", "A folder brings an index under the name that everybody can tell.", under_known_name),
    planted("seen-name", "A stranger who saw the index's name puts another index in its place.", under_seen_name),
    planted("changed-text", "The text of a file is another one in the user's own index.", changed_text),
    planted("changed-title", "The title of a file is another one in the user's own index.", changed_title),
    planted("other-folder", "The user's own index of another folder takes the place of this one's.", of_other_folder),
    planted("trigger", "The user's own index comes back with a trigger in it.", with_trigger),
)
