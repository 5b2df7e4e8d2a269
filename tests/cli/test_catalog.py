"""What there is to work with."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from explorer.observe.formatting import first_sentence

Explorer = Callable[..., subprocess.CompletedProcess[str]]


def test_tools_are_listed_with_their_roles(here: Explorer) -> None:
    """Every tool that a role may use is there, as text and as JSON."""
    rows = json.loads(here("tools", "--output-format", "json", EXPLORER_SHELL="auto").stdout)
    roles = {row["name"]: row["roles"] for row in rows}
    assert roles["call_agent"] == ["orchestrator"]
    assert roles["read_webpage"] == ["searcher"]
    assert all(row["description"] and row["parameters"] for row in rows)
    agents = json.loads(here("agents", "--output-format", "json").stdout)
    # Without a folder of the user's there is nothing to search in.
    assert {tool for agent in agents for tool in agent["tools"]} - set(roles) == {"search_corpus", "read_document"}
    assert "--corpus DIR" in here("tools").stdout
    text = here("tools", EXPLORER_SHELL="auto").stdout
    assert all(name in text for name in roles)


def test_agents_are_listed_with_the_file_each_comes_from(here: Explorer, tmp_path: Path) -> None:
    """A role of one's own replaces the built-in one, and shows it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "searcher.md").write_text("---\nname: searcher\ndescription: Looks.\ntools: [read_file]\n---\nYou look.\n")
    text = here("agents", "--roles", str(mine)).stdout
    assert str(mine / "searcher.md") in text
    assert "\n  part   leads the run\n" in text
    assert "\n  part   writes the report\n" in text


def test_models_tell_what_each_role_would_use(here: Explorer) -> None:
    """One named for all, another for one role."""
    done = here("models", "--model", "offline", "--output-format", "json")
    assert set(json.loads(done.stdout)["models"].values()) == {"offline"}
    named = here("models", "--model", "openai:gpt-4o", "--model", "writer=openai:own", OPENAI_API_KEY="sk-secret-1")
    assert "128,000\n" in named.stdout
    assert "128,000 (assumed)" in named.stdout
    page = here("models", "--model", "offline").stdout
    assert "offline mode is not a language model" in page


def test_a_description_is_shown_by_its_first_sentence() -> None:
    """Cut when even that is long."""
    assert first_sentence("Reads a file. Pages itself.\nMore.") == "Reads a file."
    assert first_sentence("word " * 50).endswith("…")
