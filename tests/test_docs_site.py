"""The pages of docs/: generated ones are current, all can be reached, and the site builds without a warning."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import explorer
from command import explorer_here
from explorer.cli.command_tables import (
    COMMANDS_OF_QUEUE,
    COMMANDS_OF_REPORTS,
    COMMANDS_OF_RUNS,
    COMMANDS_OF_SKILLS,
    GROUPS_OF_COMMANDS,
)
from explorer.cli.help_text import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COMMANDS_PAGE = DOCS / "commands.md"
GROUPS = {
    "runs": COMMANDS_OF_RUNS,
    "report": COMMANDS_OF_REPORTS,
    "skills": COMMANDS_OF_SKILLS,
    "queue": COMMANDS_OF_QUEUE,
    **{name: commands for name, _help, commands in GROUPS_OF_COMMANDS},
}
"""The commands that have others below them."""


def _help(tmp_path: Path, *words: str) -> str:
    settings = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    done = explorer_here(*words, "--help", cwd=tmp_path, settings=settings)
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


@pytest.mark.slow
def test_the_page_on_commands_is_what_they_print(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Written anew by `--update-golden`."""
    commands = [(name,) for name in COMMANDS]
    commands += [(group, name) for group, below in GROUPS.items() for name in below]
    parts = ["# Commands\n\nWhat each command prints for `--help`. Settings: [configuration.md](configuration.md).\n"]
    for words in ((), *sorted(commands)):
        title = " ".join(("explorer", *words))
        parts.append(f"## `{title}`\n\n```text\n{_help(tmp_path, *words)}\n```\n")
    page = "\n".join(parts)
    if request.config.getoption("--update-golden"):
        COMMANDS_PAGE.write_text(page, encoding="utf-8")
    assert COMMANDS_PAGE.read_text(encoding="utf-8") == page


def test_every_page_can_be_reached() -> None:
    """Each page of docs/ is in the site's menu and, but for the first, in llms.txt."""
    menu = re.findall(r'"(\w+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    pages = sorted(path.name for path in DOCS.glob("*.md"))
    assert sorted(menu) == pages
    listed = re.findall(r"\]\((\w+\.md)\)", (DOCS / "llms.txt").read_text(encoding="utf-8"))
    assert sorted([*listed, "index.md"]) == pages


def test_the_reference_has_every_public_name() -> None:
    """Each name of the Python API has its docstring on the page, from where it is defined."""
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    places = re.findall(r"^::: explorer\.[\w.]*?(\w+)$", page, re.MULTILINE)
    names = {"ModelClient" if name == "LLMClient" else name for name in places}
    assert names == set(explorer.__all__) - {"__version__"} | {"testing"}


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """With every link and anchor, and the reference rendered from the docstrings."""
    for name in ("docs", "src", "zensical.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(
        [program, "build", "--strict", "--clean"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stdout + done.stderr
    site = tmp_path / tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["site_dir"]
    reference = (site / "reference" / "index.html").read_text(encoding="utf-8")
    assert "Turn a question" in reference or "Return a run of a question" in reference
    assert (site / "llms.txt").is_file()
