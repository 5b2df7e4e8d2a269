"""The first page of help, and what starting costs."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli.app import LAZY_COMMANDS, build_app
from explorer.cli.help_text import COMMANDS, HELP

Explorer = Callable[..., subprocess.CompletedProcess[str]]

HELP_CPU_S = 0.25
SDKS = {"anthropic", "openai", "tavily", "trafilatura"}


def options_of(command: str) -> set[str]:
    """Every visible flag of a command, as the parser knows it."""
    collection = build_app()[command].assemble_argument_collection() if command else None
    arguments = collection or build_app().assemble_argument_collection()
    return {name for argument in arguments if argument.show for name in argument.names if name.startswith("--")}


def test_the_help_page_names_every_flag_of_a_question() -> None:
    """A flag the parser takes is on the hand-written page."""
    missing = {name for name in options_of("") if not re.search(rf"{name}\b", HELP)}
    assert not missing


def test_the_help_page_names_no_flag_that_the_parser_does_not_take() -> None:
    """The hand-written page promises nothing."""
    flags = set(re.findall(r"--[a-z][a-z-]+", HELP)) - {"--help", "--version"}
    assert flags <= options_of("")


def test_the_help_page_and_the_parser_know_the_same_commands() -> None:
    """Commands are listed once by hand, and the list is right."""
    assert set(COMMANDS) == {*LAZY_COMMANDS, "config"}
    assert all(re.search(rf"^  {command}\b", HELP, re.MULTILINE) for command in COMMANDS)


def test_the_help_page_fits_a_terminal() -> None:
    """No line is longer than 80 characters."""
    assert all(len(line) <= 80 for line in HELP.splitlines())


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("help",), ("--model", "x", "--help")])
def test_help_is_given_on_stdout(explorer: Explorer, arguments: tuple[str, ...]) -> None:
    """All spellings print the page and end with 0."""
    done = explorer(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, HELP, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(explorer: Explorer, command: str) -> None:
    """Its usage line comes, and nothing is started."""
    done = explorer(command, "--help")
    assert done.returncode == 0
    assert f"Usage: explorer {command}" in done.stdout
    assert done.stdout == explorer("help", command).stdout


def test_the_version_is_told(explorer: Explorer) -> None:
    """One line, on stdout."""
    assert re.fullmatch(r"explorer \d+\.\d+\.\d+\n", explorer("--version").stdout)


def test_help_is_instant(tmp_path: Path) -> None:
    """It costs less CPU than one notices; the best of three, since the machine may be busy."""
    script = Path(sys.executable).with_name("explorer")
    costs: list[float] = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Without the variables by which coverage would follow into the process, and slow it down.
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        subprocess.run([str(script), "--help"], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(costs) < HELP_CPU_S


@pytest.mark.parametrize(
    ("arguments", "strangers"),
    [
        (["--help"], SDKS | {"pydantic", "cyclopts", "rich", "explorer.run", "httpx2"}),
        (["runs"], SDKS),
        (["tools"], SDKS),
        (["agents"], SDKS),
        (["config", "show"], SDKS),
        (["rnus"], SDKS | {"explorer.run", "httpx2"}),
    ],
)
def test_what_is_not_needed_is_not_imported(tmp_path: Path, arguments: list[str], strangers: set[str]) -> None:
    """No SDK on the way to a list or a page of help."""
    code = (
        "import json, sys; sys.argv[1:] = json.loads(sys.argv[1]); from explorer.__main__ import main; main(); "
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert not imported & strangers
