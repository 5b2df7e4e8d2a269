"""The commands that README and docs show: each can be parsed, and those of the tutorial run."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import environment, explorer
from explorer.cli.app import arranged, build_app

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    {ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")}
    # Written by a test; and what was decided, in the commands of its day.
    - {ROOT / "docs" / "commands.md", ROOT / "docs" / "decisions.md"}
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:uv run )?explorer( .*)?")
NEEDS_MORE = {
    'explorer "what\'s notable on HN today"': "the network",
    'explorer --corpus ~/papers "which of these papers measure energy?"': "such a folder",
    'explorer --tools shop.py "how many ropes do we have?"': "a model",
    "explorer resume latest": "a run that was stopped",
}
"""The commands of the tutorial that are not run here, and what they need."""


def _lines(page: Path) -> Iterator[str]:
    """Yield the lines of a page's shell blocks, each with the lines that continue it."""
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            yield from block.replace("\\\n", " ").splitlines()


def _tokens(line: str) -> list[str] | None:
    """Return the words after `explorer`, up to a pipe or a redirection; None where the line is another command."""
    found = COMMAND.fullmatch(line)
    words = shlex.split(found[1] or "", comments=True) if found is not None else None
    ends = [at for at, word in enumerate(words or ()) if word in {"|", ">", "<", "&&"}]
    return words if words is None or not ends else words[: ends[0]]


@pytest.mark.slow
def test_each_command_can_be_parsed() -> None:
    """Every command and flag that a page shows is there, and what a command needs is given."""
    app = build_app()
    shown = [(page.name, line, _tokens(line)) for page in PAGES for line in _lines(page)]
    commands = [(name, line, tokens) for name, line, tokens in shown if tokens]
    assert len(commands) > 100
    for name, line, tokens in commands:
        try:
            app.parse_args(arranged(tokens), exit_on_error=False, print_error=False)
        except Exception as error:  # noqa: BLE001 - whatever the parser says belongs to the line
            pytest.fail(f"{name}: {line}: {error}")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_tutorial_works(tmp_path: Path) -> None:
    """In offline mode, in its order and one folder, each command ends well."""
    page = ROOT / "docs" / "tutorial.md"
    (program,) = (block for language, block in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "python")
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    settings = {"EXPLORER_MODEL": "offline"}
    for line in _lines(page):
        command = line.partition("  #")[0].strip().removeprefix("uv run ")
        if command in NEEDS_MORE or command.startswith("export "):
            continue
        tokens = _tokens(command)
        if tokens is None:
            variables = environment(tmp_path, {})
            subprocess.run(["bash", "-c", command], cwd=tmp_path, env=variables, check=True, capture_output=True)
        else:
            done = explorer(*tokens, cwd=tmp_path, settings=settings)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
