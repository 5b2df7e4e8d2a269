"""The first page of help, and what starting costs."""

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest
from cyclopts import CycloptsError

import explorer
from explorer.cli.app import ASK_ANYWAY, COMMANDS_OF_RUNS, GROUPS_OF_COMMANDS, LAZY_COMMANDS, build_app, usage_error
from explorer.cli.help_text import COMMANDS, HELP
from thoroughness import each_slow_but

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
    of_commands = {"--at": "fork", "--now": "stop"}
    assert all(flag in options_of(command) for flag, command in of_commands.items())
    flags = set(re.findall(r"--[a-z][a-z-]+", HELP)) - {"--help", "--version", *of_commands}
    assert flags <= options_of("")


def test_the_help_page_and_the_parser_know_the_same_commands() -> None:
    """Commands are listed once by hand, and the list is right."""
    groups = [name for name, _, _ in GROUPS_OF_COMMANDS]
    assert set(COMMANDS) == {*LAZY_COMMANDS, ASK_ANYWAY, "config", "runs", "report", "skills", "queue", *groups}
    assert all(re.search(rf"^  runs.*\b{name}\b", HELP, re.MULTILINE) for name in COMMANDS_OF_RUNS if name != "list")
    assert all(re.search(rf"^  {command}\b", HELP, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "message", "page"),
    [
        (["runs", "lst"], "there is no use for 'lst' here", "runs "),
        (["show", "a", "b", "c"], "there is no use for 'b' 'c' here", "show "),
        (["skills", "show"], "NAME is missing", "skills show "),
        (["runs", "export"], "RUN is missing", "runs export "),
        (["why", "--model"], "--model needs a value", ""),
        (["verify", "--jsn"], "unknown option: --jsn", "verify "),
    ],
)
def test_a_command_that_cannot_be_understood_is_answered_in_plain_words(
    words: list[str], message: str, page: str
) -> None:
    """None of the parser's own terms, and the page of help to read."""
    with pytest.raises(CycloptsError) as raised:
        build_app()(words, exit_on_error=False, print_error=False)
    error = usage_error(raised.value, words)
    assert error.message == message
    assert error.hint.partition(";")[0] == f"see: explorer {page}--help"


def test_the_help_page_fits_a_terminal() -> None:
    """No line is longer than 80 characters."""
    assert all(len(line) <= 80 for line in HELP.splitlines())


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("help",), ("--model", "x", "--help")])
def test_help_is_given_on_stdout(here: Explorer, arguments: tuple[str, ...]) -> None:
    """All spellings print the page and end with 0."""
    done = here(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, HELP, "")


@pytest.mark.parametrize("command", each_slow_but(9, zip(COMMANDS)))
def test_every_command_has_help(here: Explorer, command: str) -> None:
    """Its usage line comes, and nothing is started."""
    done = here(command, "--help")
    assert done.returncode == 0
    assert f"Usage: explorer {command}" in done.stdout
    assert done.stdout == here("help", command).stdout


@pytest.mark.parametrize(
    "words",
    each_slow_but(
        4,
        [
            *[((name,),) for name in ("fork", "steer", "stop", "watch", "show", "doctor", "grep")],
            *[(("runs", name),) for name in ("rm", "gc", "export", "import")],
        ],
    ),
    ids=" ".join,
)
def test_the_help_of_a_command_on_runs_has_an_example(here: Explorer, words: tuple[str, ...]) -> None:
    """One line that can be typed, and that the parser takes."""
    page = here(*words, "--help").stdout
    match = re.search(rf"Example: explorer {' '.join(words)} [^│]*", page)
    assert match is not None, page
    example = re.sub(r"^Example: explorer ", "", match[0].split("\n\n")[0])
    done = here(*shlex.split(" ".join(example.split())))
    assert (
        "there are no runs" in done.stderr or "there is no file" in done.stderr or done.stdout == "nothing to remove\n"
    )


def test_the_version_is_told(here: Explorer) -> None:
    """One line, on stdout."""
    assert re.fullmatch(r"explorer \d+\.\d+\.\d+\n", here("--version").stdout)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "strangers"),
    [
        ([["--help"]], SDKS | {"pydantic", "cyclopts", "rich", "explorer.run.run", "httpx2"}),
        ([["rnus"]], SDKS | {"explorer.run.run", "httpx2"}),
        ([["runs"], ["config", "show"], ["runs", "gc", "--dry-run"]], SDKS | {"explorer.observe.tracing"}),
        ([["tools"], ["agents"]], SDKS | {"explorer.observe.tracing"}),
    ],
)
def test_what_is_not_needed_is_not_imported(tmp_path: Path, commands: list[list[str]], strangers: set[str]) -> None:
    """No SDK on the way to a list or a page of help."""
    code = (
        "import json, sys; from explorer.__main__ import main\n"
        "for sys.argv[1:] in json.loads(sys.argv[1]): main()\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert not imported & strangers


ENGINE = {"explorer.run.run", "explorer.run.session", "explorer.offline.client", "explorer.journal.journal"}
FIRST_LINE = """
import json, os, sys
from explorer.__main__ import main

class FirstLine:
    encoding, errors = "utf-8", "replace"
    def isatty(self): return True
    def fileno(self): return 2
    def flush(self): pass
    def write(self, text):
        print(json.dumps([text, sorted(sys.modules)]), flush=True)
        os._exit(0)

sys.stderr = FirstLine()
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["How was\nMay?"], "exploring: How was May?"),
        (["ask", "x" * 99, "--output-format", "json"], "exploring: " + 67 * "x" + "…"),
        (["demo"], "exploring: What was notable on Hacker News on the sample"),
    ],
)
def test_the_first_line_comes_before_the_engine_is_imported(tmp_path: Path, words: list[str], line: str) -> None:
    """The line names the question; no SDK, no library of the network and no part of the engine is imported by then."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_LINE, *words],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-none"},
        stdin=subprocess.DEVNULL,
    )
    said, imported = json.loads(done.stdout)
    assert said.startswith(line)
    strangers = SDKS | ENGINE | {"httpx", "httpx2", "httpcore2", "yaml", "filelock", "regex", "rich.console"}
    assert not strangers & set(imported)
    assert not [name for name in imported if name.startswith(("explorer.tools.", "explorer.documents."))]


@pytest.mark.slow
def test_a_run_with_a_model_imports_no_stand_in_for_one() -> None:
    """Offline mode and the libraries of vendors and search engines are imported where a role asks them."""
    code = "import json, sys, explorer.cli.launch; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    imported = {*json.loads(done.stdout)}
    assert not imported & (SDKS | LATE | {"aiohttp", "explorer.offline.client", "explorer.offline.writer"})


SOURCES = Path(explorer.__file__).parent
IMPORT = re.compile(r"^(?:from (explorer[\w.]*) import \(?([\w ,]*)|import (explorer[\w.]*))", re.MULTILINE)
"""An import that is not indented: it runs when its module is imported."""
LATE = {
    "explorer.reports.verify.check",
    "explorer.reports.verify.figures",
    "explorer.reports.evidence",
    "explorer.documents.corpus.index",
    "explorer.documents.corpus.database",
    "explorer.cli.commands.mcp_look",
}
"""What is slow to import, and needed after the first request or in few runs only."""


def _imported_with(module: str) -> set[str]:
    """Return the modules of explorer that importing one imports."""
    found, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        path = SOURCES.parent.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in found or not path.is_file():
            continue
        found.add(name)
        for place, names, whole in IMPORT.findall(path.read_text(encoding="utf-8")):
            base = place or whole
            waiting += [base, *(f"{base}.{one.split()[0]}" for one in names.split(",") if one.strip())]
    return found


def test_what_a_first_request_does_not_need_is_not_imported_for_it() -> None:
    """The citation check and the index of a folder, among others, are imported by the functions that use them."""
    imported = _imported_with("explorer.cli.launch") | _imported_with("explorer.cli.app")
    assert {"explorer.run.run", "explorer.run.finish", "explorer.reports.verify.claims"} <= imported
    assert not imported & LATE
    assert "explorer.reports.verify.figures" in _imported_with("explorer.reports.verify.check")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai-chat", "anthropic"])
def test_until_its_first_request_a_run_imports_little(tmp_path: Path, model: str) -> None:
    """What Python says of its imports, at the moment when the model's server is asked."""
    log, asked = tmp_path / "imports.txt", Queue[str]()

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Note what is imported by now, and hang up."""
            asked.put(log.read_text(encoding="utf-8"))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's names
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server, log.open("wb") as stderr:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        words = [sys.executable, "-X", "importtime", "-m", "explorer", "--model", f"{model}:m", "How was May?"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "EXPLORER_SHELL": "off"}
        environment |= {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
        with subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
        ) as process:
            imported = {line.rpartition("|")[2].strip() for line in asked.get(timeout=50).splitlines()}
            process.kill()
        server.shutdown()
    assert {"explorer.run.run", "aiohttp"} <= imported
    assert not imported & LATE
