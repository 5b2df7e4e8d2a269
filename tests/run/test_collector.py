"""Garbage collection while a run works: rarer for the run, as before for the program around it."""

import asyncio
import gc
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

from explorer.run.collector import COLLECTOR, importing, rare_collections
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.schema.errors import ConfigError
from explorer.schema.messages import Request, Turn
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual_thresholds() -> Generator[None]:
    """What a program has that imports explorer."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


async def test_a_run_has_its_own_thresholds_and_gives_the_callers_back(tmp_path: Path) -> None:
    """While the model is asked they are the run's, in a new run and in a resumed one; after each, the caller's."""
    seen: list[tuple[int, int, int]] = []

    def script(_request: Request) -> Turn:
        seen.append(gc.get_threshold())
        return says("No report.")

    settings = Settings(workspace=tmp_path, is_sample=True, shell="off")
    hooks = RunHooks(client=ScriptedClient({"orchestrator": script}))
    run = await start("What boots?", settings, hooks)
    assert gc.get_threshold() == USUAL
    count = len(seen)
    await resume(run.folder, settings, "And why?", hooks)
    assert gc.get_threshold() == USUAL
    assert len(seen) > count > 0
    assert set(seen) == {COLLECTOR}


async def test_a_run_that_cannot_start_gives_them_back(tmp_path: Path) -> None:
    """An error ends it like any other end."""
    with pytest.raises(ConfigError):
        await start("  ", Settings(workspace=tmp_path))
    assert gc.get_threshold() == USUAL


async def test_of_runs_at_once_the_first_restores() -> None:
    """Whatever their order, the caller's thresholds hold in the end."""
    first_is_in, second_is_in, first_is_out = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def first() -> None:
        with rare_collections():
            first_is_in.set()
            await second_is_in.wait()
        first_is_out.set()

    async def second() -> None:
        await first_is_in.wait()
        with rare_collections():
            second_is_in.set()
            await first_is_out.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        group.create_task(second())
    assert gc.get_threshold() == USUAL


def test_thresholds_that_the_caller_chose_stay() -> None:
    """Larger ones are kept, and so are those that are set while a run works."""
    gc.set_threshold(100_000, 50, 100)
    with rare_collections():
        assert gc.get_threshold() == (100_000, 50, 100)
    assert gc.get_threshold() == (100_000, 50, 100)
    gc.set_threshold(*USUAL)
    with rare_collections():
        gc.set_threshold(9_000, 5, 5)
    assert gc.get_threshold() == (9_000, 5, 5)


def test_an_import_is_not_looked_through() -> None:
    """No garbage is looked for meanwhile, and what was made is left out afterwards; without an import, nothing is."""
    frozen = gc.get_freeze_count()
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    try:
        with importing():
            sys.modules["made_for_this_test"] = ModuleType("made_for_this_test")
        assert gc.get_freeze_count() > frozen
    finally:
        del sys.modules["made_for_this_test"]
        gc.unfreeze()
    gc.disable()
    try:
        with importing():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
