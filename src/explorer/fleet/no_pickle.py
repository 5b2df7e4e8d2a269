"""Takes from the queue's library what would run code that somebody wrote into the database."""

from typing import NoReturn

from dbos._serialization import DefaultSerializer


def refuse_pickle() -> None:
    """Make the library refuse pickled data in this process.

    Each row of the database says in which form it is written, and the library obeys, whatever form was asked for. What
    explorer writes there is JSON. The library has no setting for it, so its reader is replaced.
    """
    DefaultSerializer.deserialize = _refused


def _refused(cls: DefaultSerializer, serialized_data: str) -> NoReturn:  # noqa: ARG001 - the library's name
    raise ValueError(f"{len(serialized_data)} characters in the queue's database are code, which is not run")
