"""Outages are waited out, however the server goes; one that is too long pauses a run, which can be resumed."""

import threading
from pathlib import Path

import pytest

from command import explorer
from explorer.llm.retry import FIRST_CLOSED
from faults.outage_table import RUNS, SURVIVED_S, TOO_LONG_S, run_through
from faults.stage import KEY, NOTES, QUESTION, Raw, WatchfulOpenAI, steady
from model_servers import Asked, Reply
from team_script import role_of

CASES = [
    pytest.param(*run, seconds, marks=[] if 3 * number == 4 * shift else [pytest.mark.slow])
    for shift, seconds in enumerate((*SURVIVED_S, TOO_LONG_S))
    for number, run in enumerate(RUNS)
]
"""Every length on every wire in every way; every day the shortest, one in between and the longest, a wire each."""


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("wire", "way", "seconds"), CASES)
async def test_an_outage_in_the_middle_of_a_fan_out(wire: str, way: str, seconds: float, tmp_path: Path) -> None:
    """Up to five minutes are survived; twenty pause the run, and every helper continues where it was on resume."""
    outcome = await run_through(wire, way, seconds, tmp_path)
    assert not outcome.problem
    assert outcome.is_paused == (seconds == TOO_LONG_S)
    assert outcome.told > 0
    assert outcome.waited_s >= seconds


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_run_that_is_resumed_in_the_outage_waits_it_out(tmp_path: Path) -> None:
    """The journal says that the model answered before, so nothing listening at first contact is no wrong address."""
    outcome = await run_through("openai", "closed", 700, tmp_path)
    assert not outcome.problem
    assert outcome.is_paused
    assert 700 <= outcome.waited_s < 800


class RestartsAtFirst:
    """The steady team, whose server closes the first connections without an answer."""

    def __init__(self, closed: int) -> None:
        self._closed = closed
        self.asked = 0

    def __call__(self, asked: Asked) -> Reply:
        """Close, or answer."""
        self.asked += 1
        return Raw(resets="before") if self.asked <= self._closed else steady(asked)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [FIRST_CLOSED - 1, FIRST_CLOSED])
def test_a_server_that_closes_the_first_connections_may_restart(tmp_path: Path, closed: int) -> None:
    """Two are repeated and the run is complete; at the third the command ends and says what to check."""
    (tmp_path / "notes.md").write_text(NOTES)
    script = RestartsAtFirst(closed)
    with WatchfulOpenAI(script) as server:
        words = ("--model", "openai:model-a", "--no-shell", "--file", "notes.md", QUESTION)
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        done = explorer(*words, cwd=tmp_path, settings=given, seconds=60)
    if closed < FIRST_CLOSED:
        assert done.returncode == 0, done.stderr
        assert "A good May for the plant" in done.stdout
    else:
        assert (done.returncode, script.asked) == (6, FIRST_CLOSED)
        assert "closed the connection without an answer" in done.stderr
        assert "check that OPENAI_BASE_URL names a model server that runs" in done.stderr


OUTAGE_S = 10.0


class GoneForAWhile:
    """The steady team, whose server is gone for ten real seconds from a helper's second request on."""

    def __init__(self) -> None:
        self.server: WatchfulOpenAI | None = None
        self._is_down = threading.Event()
        self._was_down = False

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or be gone."""
        if not self._was_down and role_of(asked) == "searcher" and asked.results:
            self._was_down = True
            self._is_down.set()
            return Raw(resets="before", before=self._close)
        return Raw(resets="before") if self._is_down.is_set() else steady(asked)

    def _close(self) -> None:
        assert self.server is not None
        self.server.stop_listening()
        threading.Timer(OUTAGE_S, self._open).start()

    def _open(self) -> None:
        assert self.server is not None
        self._is_down.clear()
        self.server.listen_again()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_command_waits_ten_seconds_out(tmp_path: Path) -> None:
    """The installed command says what it waits for, since when and until when, and then finishes the run."""
    (tmp_path / "notes.md").write_text(NOTES)
    script = GoneForAWhile()
    with WatchfulOpenAI(script) as server:
        script.server = server
        words = ("--model", "openai:model-a", "--no-shell", "--file", "notes.md", QUESTION)
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        done = explorer(*words, cwd=tmp_path, settings=given, seconds=150)
    assert done.returncode == 0, done.stderr
    assert "waiting for openai:model-a since " in done.stderr
    assert "next try in " in done.stderr
    assert "A good May for the plant" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_command_pauses_and_resumes(tmp_path: Path) -> None:
    """Past `--max-outage` it exits with 6, says how to continue, `show` names the outage, and resume finishes."""
    (tmp_path / "notes.md").write_text(NOTES)
    script = GoneForAWhile()
    with WatchfulOpenAI(script) as server:
        script.server = server
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        words = ("--model", "openai:model-a", "--no-shell", "--file", "notes.md", "--max-outage", "3s", QUESTION)
        paused = explorer(*words, cwd=tmp_path, settings=given, seconds=100)
        page = explorer("show", "latest", cwd=tmp_path, settings=given).stdout
        done = explorer("resume", "latest", "--max-outage", "2m", cwd=tmp_path, settings=given, seconds=100)
    assert paused.returncode == 6
    assert "no request got through for 3 s" in paused.stderr
    assert "continue: explorer resume " in paused.stderr
    assert "outage   openai:model-a has not answered since " in page
    assert done.returncode == 0, done.stderr
    assert "A good May for the plant" in done.stdout
