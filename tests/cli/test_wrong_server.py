"""A server that has another API than the one asked, or none at the address: one command fixes it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from cli.stage import Explorer
from model_servers import Asked, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply

SHORT = "The bridge is 412 metres tall. [S1]\n"


def report(asked: Asked) -> Reply:
    """A model that writes a report, then finishes."""
    write = ("write_file", {"filepath": "report.md", "content": SHORT})
    return Reply(calls=[("finish_exploration", {"summary": "Done."}) if asked.results else write])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "asked_as", "works_as"),
    [(OpenAIResponsesServer, "openai", "openai-responses"), (OpenAIServer, "openai-responses", "openai-chat")],
)
def test_the_other_api_is_one_command_away(
    here: Explorer, tmp_path: Path, kind: type[ModelServer], asked_as: str, works_as: str
) -> None:
    """A server without the API is refused as a setting, and the whole command that is shown completes the run."""
    (tmp_path / "notes.md").write_text("The bridge is 412 metres tall.\n")
    with kind(report) as server:
        words = ("How tall is it?", "--file", "notes.md", "--no-shell", "-q", "--model", f"{asked_as}:model-a")
        done = here(*words, OPENAI_BASE_URL=server.url)
        assert (done.returncode, done.stdout) == (2, "")
        match = re.search(
            r"^  → nothing is lost; continue: explorer (resume \S+ --model (\S+))$", done.stderr, re.MULTILINE
        )
        assert match is not None, done.stderr
        assert match[2] == f"{works_as}:model-a"
        again = here(*shlex.split(match[1]), "-q", "--output-format", "json", OPENAI_BASE_URL=server.url)
    assert json.loads(again.stdout)["status"] == "complete", again.stderr


def test_a_base_url_without_its_version_is_named_as_the_cause(here: Explorer) -> None:
    """The most frequent mistake in the address is an error of the settings, with what to correct, not a failed run."""
    with OpenAIServer([]) as server:
        done = here("How tall is it?", "-q", "--model", "openai:model-a", OPENAI_BASE_URL=server.origin)
    assert (done.returncode, done.stdout) == (2, "")
    assert "  → check the address in OPENAI_BASE_URL: it should end in /v1\n" in done.stderr
    assert "continue: explorer resume" in done.stderr
