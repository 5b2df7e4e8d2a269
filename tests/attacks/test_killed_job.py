"""A run is killed in the middle of a background job and taken up again: nothing stays behind, and the agent is told."""

import threading
from pathlib import Path

import pytest

from attacks.world import events
from command import begin, explorer
from explorer.sandbox.jobs import GONE
from explorer.sandbox.selection import candidates
from explorer.schema.events import NoteAdded, Status, ToolFinished, ToolStarted
from explorer.schema.reasons import NoteReason
from model_servers import Asked, OpenAIServer, Reply
from sandbox.cages import kill_with_job
from team_script import body_of, only_run, role_of

MARK = "sleep 87654"
JOB = f"cd scratch; echo begun; touch ready; {MARK}; echo done"
REPORT = "# May\n\nOutput rose by 12 % in May [S1]; the long calculation was cut off, and its first line is kept.\n"


class Analyst:
    """A model whose analyzer starts a job, and, once the job runs, thinks until its run is killed."""

    def __init__(self) -> None:
        self.is_running = threading.Event()
        self.is_resumed = False

    def __call__(self, asked: Asked) -> Reply:
        """Answer by role."""
        return self._lead(asked) if role_of(asked) == "orchestrator" else self._analyze(asked)

    def _analyze(self, asked: Asked) -> Reply:
        steps = [
            ("execute_shell", {"command": f"mkdir -p scratch; {JOB}", "run_in_background": True}),
            ("execute_shell", {"command": "until [ -e scratch/ready ]; do sleep 0.05; done; cat /proc/uptime"}),
            ("get_shell_output", {"bash_id": "bash_1", "block": True}),
        ]
        if len(asked.results) == 2 and not self.is_resumed:
            self.is_running.set()
            return Reply(stalls="silent")
        if len(asked.results) < len(steps):
            return Reply(calls=[steps[len(asked.results)]])
        return Reply(text=f"The job said: {asked.results[-1]}")

    def _lead(self, asked: Asked) -> Reply:
        steps = [
            ("call_agent", {"agent_type": "analyzer", "task_description": "Compute it."}),
            ("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}),
            ("finish_exploration", {"summary": "Output rose."}),
        ]
        return Reply(calls=[steps[min(len(asked.results), 2)]])


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_job(tmp_path: Path) -> None:
    """SIGKILL ends the job too; resumed, its agent is told that it is gone, nothing runs twice, and the run ends."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    (tmp_path / "notes.md").write_text("Output rose by 12 % in May.\n")
    script = Analyst()
    with OpenAIServer(script) as model:
        server = {"OPENAI_API_KEY": "sk-test-12345678", "OPENAI_BASE_URL": model.url}
        settings = {**server, "EXPLORER_SHELL": "auto"}
        process = begin("--file", "notes.md", "How was May?", cwd=tmp_path, settings=settings, is_fresh=True)
        assert script.is_running.wait(200), process.communicate(timeout=1)
        kill_with_job(process, MARK)
        script.is_resumed = True
        done = explorer("resume", "latest", cwd=tmp_path, settings=settings, is_fresh=True)
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path / "workspace")
    record = events(run)
    assert [one.reason for one in record if isinstance(one, NoteAdded)] == [NoteReason.JOB_ENDED]
    assert [one.name for one in record if isinstance(one, ToolStarted) and one.effect == "job"] == ["execute_shell"] * 2
    (seen,) = [one.content for one in record if isinstance(one, ToolFinished) and one.name == "get_shell_output"]
    assert GONE in seen
    assert "begun" in seen
    assert "done" not in seen
    assert f"status: {Status.COMPLETE}" in (run / "report.md").read_text()
    assert "12 %" in body_of((run / "report.md").read_text())
