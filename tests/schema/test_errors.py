"""Which error a group of tasks ends with."""

import asyncio
from collections.abc import Coroutine

import pytest

from explorer.schema.errors import ExplorerError, ModelError, ModelFault, StorageError, first_of

FULL = StorageError("the disk is full")
REFUSED = ModelError(ModelFault.CREDENTIALS, "401")
BUG = KeyError("a bug")


@pytest.mark.parametrize(
    ("errors", "first"),
    [
        pytest.param([FULL], FULL, id="one"),
        pytest.param([REFUSED, FULL], REFUSED, id="the first of two"),
        pytest.param([ExceptionGroup("inner", [ExceptionGroup("innermost", [FULL])]), REFUSED], FULL, id="nested"),
        pytest.param([FULL, BUG], None, id="a bug beside it"),
        pytest.param([ExceptionGroup("inner", [FULL, BUG])], None, id="a bug inside"),
        pytest.param([BUG], None, id="only a bug"),
    ],
)
def test_first_of(errors: list[Exception], first: ExplorerError | None) -> None:
    """One error of ours comes out of nested groups, and a bug among them is never passed over for it."""
    assert first_of(ExceptionGroup("outer", errors), ExplorerError) is first


async def together(work: Coroutine[None, None, None]) -> None:
    """Run it as the product runs what goes on at once."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work)
    except BaseExceptionGroup as errors:
        raise first_of(errors, ExplorerError) or errors from None


async def test_it_leaves_two_groups_of_tasks_bare() -> None:
    """An error that passes two task groups arrives as itself, on every supported Python."""

    async def fail() -> None:
        raise FULL

    with pytest.raises(StorageError) as caught:
        await together(together(fail()))
    assert caught.value is FULL
