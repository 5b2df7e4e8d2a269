"""The end of a run, sent to the desktop or to a URL: signed, repeated where that helps, and no trouble of the run."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import STORY
from cli.stage import Explorer
from explorer.cli.notify import Notifier, headers_of
from explorer.cli.screens.output import INTERRUPTED
from explorer.observe.command_result import CommandResult
from explorer.schema.network import Network
from explorer.schema.settings import Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DONE = CommandResult("complete", 0, run_id="r1", report="/w/r1/report.md", citations=3, verdicts={"supported": 3})


@dataclass
class Receiver:
    """A receiver of webhooks, and what it got."""

    url: str = ""
    answers: Sequence[int] = (200,)
    """The status of each answer in turn; the last one stays."""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Keep a webhook, and return the status to answer with."""
        self.got.append((headers, body))
        return self.answers[min(len(self.got), len(self.answers)) - 1]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on loopback."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = found.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            if status in {301, 307}:
                self.send_header("Location", f"{found.url}/elsewhere")
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's names
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/hook/T0KEN"
    yield found
    server.shutdown()
    server.server_close()


def send(receiver: Receiver, outcome: CommandResult = DONE, secret: str = "") -> None:
    """Send the end of a run."""
    Notifier((receiver.url,), secret, Network()).send("What now?", outcome)


def test_a_signature_is_that_of_the_standards_own_example() -> None:
    """Id, time, body and secret of the example in the libraries of Standard Webhooks."""
    found = headers_of("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', SECRET)
    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert "webhook-signature" not in headers_of("msg_1", 1, b"", "")


@pytest.mark.slow
def test_a_run_sends_its_end_signed(here: Explorer, receiver: Receiver) -> None:
    """The documented fields, a signature that verifies, and nothing of it on screen or in the run."""
    done = here("demo", STORY, "--notify", receiver.url, EXPLORER_WEBHOOK_SECRET=SECRET)
    assert done.returncode == 0, done.stderr
    ((headers, body),) = receiver.got
    sent = json.loads(body)
    assert (sent["type"], set(sent)) == ("run.ended", {"type", "timestamp", "data"})
    data = sent["data"]
    assert (data["question"], data["status"], data["exit_code"], data["error"]) == (STORY, "complete", 0, None)
    assert Path(data["report"]).is_file()
    assert data["verdicts"]["supported"] == data["citations"] > 0
    page = (Path(__file__).parents[2] / "docs/outputs.md").read_text()
    assert set(json.loads(page.split("### The webhook")[1].split("```json")[1].split("```")[0])["data"]) == set(data)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    kept = "".join(path.read_text(errors="replace") for path in Path("workspace").rglob("*") if path.is_file())
    assert SECRET not in kept + done.stdout + done.stderr


def test_a_receiver_that_is_busy_is_asked_again(receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    """With the same id, so that it can tell; a signature for each attempt."""
    receiver.answers = (429, 429, 200)
    send(receiver, secret=SECRET)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len(receiver.got) == 3
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (307, 1), (429, 4)])
def test_a_receiver_that_refuses_is_reported(
    receiver: Receiver, capsys: pytest.CaptureFixture[str], status: int, attempts: int
) -> None:
    """Redirects are not followed; what does not help is not repeated; the key in the address is not shown."""
    receiver.answers = (status,)
    send(receiver)
    assert len(receiver.got) == attempts
    said = capsys.readouterr().err
    assert said == f"not notified: http://127.0.0.1: it answered {status}\n"


def test_an_interrupted_run_tries_once(receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever stopped it waits."""
    receiver.answers = (429,)
    send(receiver, CommandResult("interrupted", INTERRUPTED, run_id="r1"))
    assert len(receiver.got) == 1
    assert json.loads(receiver.got[0][1])["data"]["status"] == "interrupted"
    assert "not notified" in capsys.readouterr().err


@pytest.mark.slow
def test_an_address_without_a_server_changes_no_exit_code(here: Explorer) -> None:
    """The report and the exit code are those of the run; one line says that nobody heard of it."""
    done = here("demo", STORY, "--notify", "http://127.0.0.1:9/x", "--notify", "desktop", PATH="/nowhere")
    assert done.returncode == 0
    assert done.stdout.startswith("---\n")
    assert "not notified: http://127.0.0.1: " in done.stderr
    assert "not notified: desktop: neither notify-send nor osascript is there" in done.stderr


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (("--notify", "mail"), {}, "--notify desktop, or --notify https://"),
        (("--notify", "https://user:key@a.example/"), {}, "--notify does not take"),
        (("--notify", "file:///etc/passwd"), {}, "--notify does not take"),
        (("--notify", "desktop"), {"EXPLORER_WEBHOOK_SECRET": "whsec_short"}, "24 to 64 bytes"),
    ],
)
def test_what_cannot_be_notified_is_refused(
    here: Explorer, words: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    """2, before the run begins."""
    done = here("demo", STORY, *words, **variables)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not Path("workspace").exists()


@pytest.mark.parametrize("name", ["notify-send", "osascript"])
def test_words_on_the_desktop_are_neither_markup_nor_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What strangers wrote is in a reason: it arrives as text, in an argument of its own."""
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    reason = '<img src="http://evil.example/"> " & do shell script "id"'
    Notifier(("desktop",), "", Network()).send("-q", CommandResult("partial", 3, reason=reason))
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-2] == "explorer: partial"
    assert words[-1].startswith("-q (")
    assert ("<img" in words[-1]) == (name == "osascript")
    assert not any("do shell script" in word for word in words[:-1])
    assert (name == "osascript") or words[-3] == "--"


def test_no_target_needs_no_secret() -> None:
    """A secret that cannot be used matters only to who notifies."""
    assert Notifier.of((), Settings()).targets == ()
