"""The command `serve` as a process: where it listens, what it prints, how it ends."""

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.stage import begin_explorer, end_of

pytestmark = pytest.mark.slow


@contextmanager
def serving(folder: Path, *words: str, **variables: str) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """A server in a folder of its own, and the address that it printed."""
    process = begin_explorer(*words, cwd=folder, **variables)
    try:
        assert process.stderr is not None
        line = ""
        while "explorer is at" not in line:
            line = process.stderr.readline()
            assert line, process.stderr.read()
        yield process, line.rpartition(" ")[2].strip()
    finally:
        process.kill()
        end_of(process)


def got(address: str, token: str = "") -> tuple[int, str]:
    """The status and the text of a page."""
    request = urllib.request.Request(address.partition("?")[0], headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_port_in_use_and_wrong_flags_are_explained(tmp_path: Path) -> None:
    """Exit code 4 and the flag that helps; flags that cannot be used end with 2, before anything listens."""
    with serving(tmp_path, "serve", "--model", "offline", "--port", "0") as (process, address):
        assert got(address)[0] == 401
        assert got(address, address.partition("?token=")[2])[0] == 200
        port = re.findall(r":(\d+)/", address)[0]
        code, _, said = end_of(begin_explorer("serve", "--model", "offline", "--port", port, cwd=tmp_path))
        assert code == 4
        assert f"port {port} is in use" in said
        assert "--port N" in said
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    wrong = ["--port 99999", "--max-runs 0", "--token short", "--host 256.1.1.1", "--approval-wait long"]
    for flags in map(str.split, (*wrong, "--token none --host 0.0.0.0")):
        assert end_of(begin_explorer("serve", "--model", "offline", *flags, cwd=tmp_path))[0] == 2, flags


def test_on_this_machine_no_token_is_needed_where_none_is_wanted(tmp_path: Path) -> None:
    """Everybody on the machine is shown everything then."""
    with serving(tmp_path, "serve", "--model", "offline", "--port", "0", "--token", "none") as (_, address):
        assert "?" not in address
        assert got(address)[0] == 200


def test_another_address_needs_the_token_that_is_printed(tmp_path: Path) -> None:
    """Without it nothing is shown; it is the same at the next start."""
    addresses: list[str] = []
    for _ in range(2):
        with serving(tmp_path, "serve", "--model", "offline", "--port", "0", "--host", "0.0.0.0") as (_, address):  # noqa: S104
            page, _, token = address.partition("?token=")
            assert len(token) >= 16
            assert got(page)[0] == 401
            assert got(page, "wrong")[0] == 401
            assert got(page, token)[0] == 200
            addresses.append(token)
    assert addresses[0] == addresses[1]


def test_the_demo_opens_on_the_running_run(tmp_path: Path) -> None:
    """`demo --web` starts the run, opens its page with the user's browser, and shows it to its end."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    with serving(tmp_path, "demo", "--web", BROWSER=str(browser)) as (process, address):
        assert "/runs/" in address
        page, _, token = address.partition("?token=")
        text = ""
        while 'data-status="complete"' not in text:
            code, text = got(page, token)
            assert code == 200
        assert "We left the cluster" in text
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    started_with = opened.read_text().strip()
    assert started_with.startswith(f"{page}?token=")
    assert token not in started_with
