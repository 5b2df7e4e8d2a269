"""What is made from the settings is as the settings have it."""

from pathlib import Path

import pytest

from settings_pages import BEGIN, END, docs_tables, example_file, flag_help

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "docs" / "configuration.md"


def compare(request: pytest.FixtureRequest, path: Path, text: str) -> None:
    """Compare a page with what is made now, or write it when `--update-golden` is given."""
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{path.name} differs from the settings; see --update-golden"


def test_the_example_file_is_made_from_the_settings(request: pytest.FixtureRequest) -> None:
    """`.env.example` is written by no hand."""
    compare(request, ROOT / ".env.example", example_file())


def test_the_tables_of_the_docs_are_made_from_the_settings(request: pytest.FixtureRequest) -> None:
    """The part of docs/configuration.md between two marks is written by no hand."""
    before, _, rest = CONFIGURATION.read_text(encoding="utf-8").partition(BEGIN)
    assert END in rest
    compare(request, CONFIGURATION, before + docs_tables() + rest.partition(END)[2])


def test_the_flags_of_the_help_page_are_made_from_the_options(request: pytest.FixtureRequest) -> None:
    """The first page of help lists what the parser knows, in the parser's words."""
    compare(request, ROOT / "src" / "explorer" / "cli" / "flag_help.py", flag_help())


def test_every_link_of_the_tables_leads_to_a_section() -> None:
    """`[More](#outages)` is a heading of the page."""
    page = CONFIGURATION.read_text(encoding="utf-8")
    headings = {
        "".join(letter for letter in line.lstrip("# ").lower().replace(" ", "-") if letter.isalnum() or letter == "-")
        for line in page.splitlines()
        if line.startswith("#")
    }
    linked = {part.partition(")")[0] for part in docs_tables().split("(#")[1:]}
    assert linked
    assert linked <= headings
