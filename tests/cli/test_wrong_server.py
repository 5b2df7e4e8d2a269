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
def test_a_run_whose_account_is_empty_pauses_and_continues_after_payment(here: Explorer, tmp_path: Path) -> None:
    """The screen names the cure, nothing is called failed, and `resume` goes on from the last turn."""
    (tmp_path / "notes.md").write_text("The bridge is 412 metres tall.\n")
    refusal = Reply(status=402, body=json.dumps({"error": {"message": "This request requires more credits."}}))
    writes = Reply(calls=[("write_file", {"filepath": "report.md", "content": SHORT})])
    finishes = Reply(calls=[("finish_exploration", {"summary": "Done."})])
    with OpenAIServer([writes, refusal, finishes]) as server:
        words = ("How tall is it?", "--file", "notes.md", "--no-shell", "-q", "--model", "openai:model-a")
        done = here(*words, OPENAI_BASE_URL=server.url)
        assert (done.returncode, done.stdout) == (4, "")
        assert "refused the request for lack of credit (status 402): This request requires more credits." in done.stderr
        assert "\n  → add credit to the provider's account, or take another provider: explorer models\n" in done.stderr
        again = here("resume", "latest", "-q", OPENAI_BASE_URL=server.url)
    assert again.returncode == 0, again.stderr
    assert "412 metres tall" in again.stdout


@pytest.mark.slow
def test_a_local_server_without_its_flag_is_named_the_flag(here: Explorer) -> None:
    """What a refusal needs is on the screen, and the exit code is that of a setting."""
    refusal = Reply(status=500, body=json.dumps({"error": {"message": "tools param requires --jinja flag"}}))
    with OpenAIServer([refusal]) as server:
        done = here("How tall is it?", "--no-shell", "-q", "--model", "openai:model-a", OPENAI_BASE_URL=server.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "start the server with its chat template: llama-server --jinja" in done.stderr


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
