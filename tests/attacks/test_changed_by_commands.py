"""Commands change, remove and move files, and are cut off while they do: the journal knows the folder all the same."""

import json
import signal
import threading
from pathlib import Path

import pytest

from attacks.world import events
from command import begin, explorer
from explorer.sandbox.selection import candidates
from explorer.schema.events import ToolFinished
from model_servers import Asked, OpenAIServer, Reply
from team_script import only_run, role_of

REPORT = "# May\n\nOutput rose by 12 % in May [S1]; the tables are kept.\n"
COMMAND = "echo '| 3 | 4 |' >> kept.md; echo new > made.md; rm removed.md; mv moved.md away.md; touch begun"


class Analyst:
    """A model whose analyzer writes three files, changes them by a command, and then thinks until it is killed."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.is_begun = threading.Event()
        self.is_resumed = False

    def __call__(self, asked: Asked) -> Reply:
        """Answer by role."""
        return self._lead(asked) if role_of(asked) == "orchestrator" else self._analyze(asked)

    def _analyze(self, asked: Asked) -> Reply:
        if not asked.results:
            names = ("kept.md", "removed.md", "moved.md")
            return Reply(calls=[("write_file", {"filepath": name, "content": f"# {name}\n"}) for name in names])
        if len(asked.results) == 3:
            return Reply(calls=[("execute_shell", {"command": self.command})])
        if not self.is_resumed:
            self.is_begun.set()
            return Reply(stalls="silent")
        return Reply(text="The tables are kept.")

    def _lead(self, asked: Asked) -> Reply:
        steps = [
            ("call_agent", {"agent_type": "analyzer", "task_description": "Compute it."}),
            ("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}),
            ("finish_exploration", {"summary": "Output rose."}),
        ]
        return Reply(calls=[steps[min(len(asked.results), 2)]])


def files_found(folder: Path) -> dict[str, str]:
    """What `doctor` says of a run's files."""
    done = explorer("doctor", "latest", "--output-format", "json", cwd=folder, is_fresh=True)
    return next(one for one in json.loads(done.stdout) if one["name"] == "files")


@pytest.mark.slow
@pytest.mark.parametrize("is_cut_off", [False, True], ids=["ended", "cut off"])
def test_doctor_explains_what_a_command_changed(*, is_cut_off: bool, tmp_path: Path) -> None:
    """No false alarm: an ended command's changes are on record, those of one that was cut off after a resume."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    (tmp_path / "notes.md").write_text("Output rose by 12 % in May.\n")
    script = Analyst(f"{COMMAND}; sleep 87653" if is_cut_off else COMMAND)
    with OpenAIServer(script) as model:
        server = {"OPENAI_API_KEY": "sk-test-12345678", "OPENAI_BASE_URL": model.url}
        settings = {**server, "EXPLORER_SHELL": "auto"}
        process = begin("--file", "notes.md", "How was May?", cwd=tmp_path, settings=settings, is_fresh=True)
        while is_cut_off and not list(tmp_path.glob("workspace/*/begun")):
            assert process.poll() is None, process.communicate()
        assert is_cut_off or script.is_begun.wait(200), process.communicate(timeout=1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found = files_found(tmp_path)
        if is_cut_off:
            assert found["level"] == "warn"
            assert "cut off in the middle: execute_shell" in found["words"]
            assert "explorer resume" in found["fix"]
        else:
            assert found["level"] == "ok", found
        script.is_resumed = True
        done = explorer("resume", "latest", cwd=tmp_path, settings=settings, is_fresh=True)
    assert done.returncode == 0, done.stderr
    assert files_found(tmp_path)["level"] == "ok"
    run = only_run(tmp_path / "workspace")
    (ran,) = [one for one in events(run) if isinstance(one, ToolFinished) and one.name == "execute_shell"]
    assert ran.success is not is_cut_off
    assert {file.path for file in ran.files} == {"kept.md", "made.md", "away.md", "begun"}
    assert set(ran.removed) == {"removed.md", "moved.md"}
