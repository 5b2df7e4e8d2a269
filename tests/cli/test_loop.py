"""Runs go over uvloop where it is installed, and over Python's own loop elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from command import environment

PROGRAM = """
import asyncio, sys
{hide}
async def said(*words):
    print(type(asyncio.get_running_loop()).__module__, file=sys.stderr)
    return await real(*words)
from explorer.cli.session import Session
real, Session.drive = Session.drive, said
from explorer.__main__ import main
sys.argv = ["explorer", "demo", "--quiet", "--max-steps", "3"]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hide", "loop"),
    [
        pytest.param("", "uvloop", id="installed"),
        pytest.param("sys.modules['uvloop'] = None", "asyncio.unix_events", id="not installed"),
    ],
)
def test_a_run_goes_over_the_fastest_loop_there_is(hide: str, loop: str, tmp_path: Path) -> None:
    """The report comes out either way, here one of few steps."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hide=hide)],
        env=environment(tmp_path, {}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "# " in done.stdout
    assert loop in done.stderr
