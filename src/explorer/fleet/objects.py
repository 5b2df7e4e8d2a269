"""Large contents in an object store: S3 and what speaks its protocol, Google's, Azure's, or a folder."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from explorer.fleet.run_contents import ObjectStore
from explorer.schema.errors import ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Opened

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
