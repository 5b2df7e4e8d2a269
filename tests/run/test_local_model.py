"""Small questions to a real, small model on this machine, over the OpenAI-compatible endpoint: nothing is scripted.

Such a model writes bad reports, or none. What is looked at is the engine: whatever the model does, the requests are
accepted, the run ends by itself for a reason that is named, and what is on disk is whole.

The model's server is `serve.py` of a folder beside the project, `shared/local_model`. Its model and its Python
environment are in the folder that LOCAL_MODELS names: `*.gguf` and `venv`. The README of that folder says how to get
them. Without them the test is skipped.
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from command import explorer
from explorer.schema.errors import ModelFault
from explorer.schema.events import ToolFinished, TurnFailed, TurnTaken
from team_script import cited_references, only_run, records_of

SERVER = Path(__file__).parents[3] / "shared" / "local_model"
MODELS = Path(os.environ.get("LOCAL_MODELS", "")).expanduser()
START_S = 60
SLOWEST_ANSWER_S = 60
"""For one word; a slower machine would need hours for the run."""
NOTES = """# Notes on the bridge

The bridge over the Lahn is 412 metres long. It was opened in 1998 and cost 31 million euros.
A survey in 2021 found rust in two of the six cables. The repair is planned for 2027.
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The base URL of the model's server."""
    models = sorted(MODELS.glob("*.gguf")) if os.environ.get("LOCAL_MODELS") else []
    if not (SERVER / "serve.py").is_file():
        pytest.skip(f"there is no local model beside the project ({SERVER})")
    if not models:
        pytest.skip("LOCAL_MODELS names no folder with a model (*.gguf); see the local model's README")
    with served(models[0]) as address:
        yield address


@contextmanager
def served(model: Path) -> Generator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    template = SERVER / "qwen-fence.jinja"
    words = [MODELS / "venv" / "bin" / "python", SERVER / "serve.py", model, "--port", port, "--template", template]
    # Without it the server's threads spin while they wait for a busy processor.
    environment = {"PATH": os.environ["PATH"], "OMP_WAIT_POLICY": "passive"}
    with subprocess.Popen(
        [str(word) for word in words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        address = f"http://127.0.0.1:{port}/v1"
        try:
            _wait_for_an_answer(address, process)
            yield address
        finally:
            process.terminate()


def _wait_for_an_answer(address: str, process: "subprocess.Popen[bytes]") -> None:
    """Ask for one word until there is an answer; give up, visibly, where that takes too long."""
    body = {"model": "local", "max_tokens": 1, "messages": [{"role": "user", "content": "Say yes."}]}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}/chat/completions", json.dumps(body).encode(), headers)
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.skip(f"the local model's server ended at once, with {process.returncode}")
        try:
            with urllib.request.urlopen(request, timeout=SLOWEST_ANSWER_S) as answer:
                answer.read()
        except TimeoutError:
            break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
        else:
            return
    pytest.skip(f"the local model is too slow here: no answer within {START_S} s")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_small_model_is_survived(url: str, tmp_path: Path) -> None:
    """No request is rejected, every turn is on record with its tokens, and the report says how the run ended."""
    (tmp_path / "notes.md").write_text(NOTES)
    words = ("How long is the bridge, and what did the survey find?", "--file", "notes.md", "--output-format", "json")
    limits = ("--max-steps", "12", "--max-time", "5m")
    done = explorer(*words, *limits, cwd=tmp_path, settings={"OPENAI_BASE_URL": url}, seconds=600)
    shown = json.loads(done.stdout)
    assert "\nmodel openai:local for all roles: the first model of OPENAI_BASE_URL\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, shown["status"]) in {(0, "complete"), (3, "partial"), (1, "failed"), (124, "partial")}
    assert (shown["status"] == "complete") == (shown["reason"] == "")
    folder = only_run(tmp_path / "workspace")
    events = [record.event for record in records_of(folder)]
    turns = [event.turn for event in events if isinstance(event, TurnTaken)]
    assert turns
    assert all(turn.usage.input_tokens > 0 and turn.model == "local" for turn in turns)
    refused = [event for event in events if isinstance(event, TurnFailed) and event.fault == ModelFault.REJECTED]
    assert refused == []
    report = (folder / "report.md").read_text()
    head = yaml.safe_load(report.split("---\n")[1])
    assert (head["status"], head.get("reason", "")) == (shown["status"], shown["reason"])
    assert all((folder / ".explorer" / "sources" / f"{one}.md").is_file() for one in cited_references(report))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_small_model_reports_in_lean_mode(url: str, tmp_path: Path) -> None:
    """It reads the file and ends by itself with a report that cites it, whatever it says there."""
    (tmp_path / "notes.md").write_text(NOTES)
    words = ("How long is the bridge?", "--file", "notes.md", "--lean", "--output-format", "json")
    done = explorer(*words, "--max-time", "10m", cwd=tmp_path, settings={"OPENAI_BASE_URL": url}, seconds=800)
    shown = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    assert shown["status"] in {"complete", "partial", "nothing_found"}
    folder = only_run(tmp_path / "workspace")
    assert cited_references((folder / "report.md").read_text()) == {"S1"}
    events = [record.event for record in records_of(folder)]
    names = [event.name for event in events if isinstance(event, ToolFinished)]
    assert names[:3] == ["read_source", "write_file", "finish_exploration"]
    assert all(event.success for event in events if isinstance(event, ToolFinished) and event.name == "read_source")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_small_model_is_measured(url: str, tmp_path: Path) -> None:
    """The probe ends with a profile: the window by the server's word, and that its replies follow a form."""
    done = explorer("doctor", "--probe", cwd=tmp_path, settings={"OPENAI_BASE_URL": url}, seconds=800)
    assert done.returncode == 0, done.stdout
    assert "replies in a form, window 16,384 tokens" in done.stdout
