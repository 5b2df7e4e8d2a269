"""Where no sandbox holds: no shell, one reason, and a run that goes on; what once held a run is not dropped."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from attacks.obedient import Call, ObedientClient
from attacks.test_obedient import Interrupted
from attacks.world import NO_SHELL, World, call, denied, events, helping, html_page, leading, world
from command import environment
from explorer.cli.settings.user_folders import state_folder
from explorer.run.hooks import RunHooks
from explorer.run.run import resume
from explorer.schema.errors import ModelError
from explorer.schema.events import SandboxChosen, Status
from model_servers import Asked, OpenAIServer, Reply
from sandbox.test_selection import SHIM
from team_script import only_run, role_of

HOST = (
    SHIM.partition("chosen = ")[0]
    + "sys.argv[1:] = sys.argv[2:]\nfrom explorer.__main__ import main\nsys.exit(main())\n"
)
NEITHER = "no namespaces, no Landlock"
HINT = re.compile("apt install bubblewrap|allow bubblewrap to make user namespaces")
"""Where it is missing, and where it is there and not allowed."""


def on_a_host(lacks: str, *words: str, cwd: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """`explorer` on a machine where something is not allowed."""
    return subprocess.run(
        [sys.executable, "-c", HOST, lacks, *words],
        cwd=cwd,
        env=environment(cwd, {"EXPLORER_SHELL": "auto", **settings}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def analyze(asked: Asked) -> Reply:
    """An analyzer that asks for a shell at once; a lead that has it do so, and then writes the report."""
    if role_of(asked) == "analyzer":
        if not asked.results:
            return Reply(calls=[("execute_shell", {"command": "echo $((6 * 7))"})])
        return Reply(text=f"It said: {asked.results[-1][:60]}")
    report = "# The sum\n\nIt is 42, as the notes say [S1], and nobody has ever doubted it since then.\n"
    steps = [
        Reply(calls=[("call_agent", {"agent_type": "analyzer", "task_description": "Compute."})]),
        Reply(calls=[("write_file", {"filepath": "report.md", "content": report, "mode": "overwrite"})]),
        Reply(calls=[("finish_exploration", {"summary": "It is 42."})]),
    ]
    return steps[min(len(asked.results), 2)]


@pytest.mark.slow
def test_without_a_sandbox_there_is_no_shell_and_the_run_goes_on(tmp_path: Path) -> None:
    """Neither namespaces nor Landlock: the model has no such tool, the journal has the reason in a line."""
    (tmp_path / "notes.md").write_text("6 times 7 is 42.\n")
    with OpenAIServer(analyze) as server:
        words = ("--file", "notes.md", "What is 6 times 7?")
        done = on_a_host(NEITHER, *words, cwd=tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test-12345678")
    assert done.returncode == 0, done.stderr
    offered = {tool["function"]["name"] for body in server.requests for tool in body["tools"]}
    assert "read_file" in offered
    assert not offered & {"execute_shell", "get_shell_output", "kill_shell"}
    run = only_run(tmp_path / "workspace")
    assert len(denied(run)) == 1
    reasons = [event for event in events(run) if isinstance(event, SandboxChosen)]
    assert all(not event.tier and HINT.search(event.why) for event in reasons)
    assert len(reasons) == 1, "one line says why"
    assert "\n" not in reasons[0].why


@pytest.mark.slow
@pytest.mark.parametrize("command", ["tools", "doctor"])
def test_the_reason_is_shown(command: str, tmp_path: Path) -> None:
    """`tools` and `doctor` say in a line that there is no shell, why, and what brings it."""
    done = on_a_host(NEITHER, command, cwd=tmp_path)
    shown = " ".join((done.stdout + done.stderr).split())
    assert HINT.search(shown)
    assert "it does not run here" in shown or "this machine has no sandbox" in shown


@pytest.mark.slow
async def test_a_run_does_not_go_on_under_another_sandbox(tmp_path: Path, memory: Path) -> None:
    """What held a run's commands before is not there now: it stops with the way on, and `--no-shell` goes on."""
    async with world(tmp_path, {"/page": html_page("Nothing.")}, memory) as made:
        plans = {"orchestrator": leading(call("analyzer")), "analyzer": helping([READ], [WRITE])}
        with pytest.raises(ModelError):
            # With the folder of the user who resumes it, so that the run is known to be the user's own.
            await made.explore(Interrupted(plans), state_dir=state_folder({"HOME": str(made.folder)}))
        if tiers(made) != ["bubblewrap"]:
            pytest.skip("bubblewrap does not hold here")
        size = len(events(made.run))
        key = {"OPENAI_API_KEY": "sk-test-12345678", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
        words = ("resume", made.run.name, "--model", "openai:model-a")
        elsewhere = on_a_host("no namespaces", *words, cwd=made.folder, **key)
        assert elsewhere.returncode == 2, elsewhere.stderr
        assert "bubblewrap, which does not work here now" in elsewhere.stderr
        assert f"explorer resume {made.run.name} --no-shell" in elsewhere.stderr
        # What this session would have worked with, and nothing else.
        assert [one.type for one in events(made.run)[size:]] == ["session_configured"]
        result = await resume(made.run, made.settings(**NO_SHELL), hooks=RunHooks(client=ObedientClient(plans)))
        assert result.status is Status.COMPLETE
        assert tiers(made) == ["bubblewrap", ""]


READ: Call = ("list_files", {})
WRITE: Call = ("execute_shell", {"command": "echo x > findings.txt"})


def tiers(made: World) -> list[str]:
    """What held the run's commands, life by life."""
    return [event.tier for event in events(made.run) if isinstance(event, SandboxChosen)]
