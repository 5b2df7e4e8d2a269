"""The fleet's compose file: its services have few rights, and they work on a file system that is read-only."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.stage import SCRIPT, clean_environment
from explorer.cli.settings.values import all_settings
from explorer.schema.network import VARIABLES as NETWORK_VARIABLES
from fleet.postgres import server
from sources.loopback import kept_port

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
OURS = ("worker", "web", "cli")
JOINING = {"EXPLORER_FLEET_DATABASE", "EXPLORER_FLEET_STORE"}
"""Settings that the compose file sets itself, so that its services are one fleet."""
PATIENCE_S = 120


def services() -> dict[str, Any]:
    """The services of the compose file."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def example_variables() -> set[str]:
    """The variables of the example file."""
    return set(re.findall(r"^(\w+)=", (DEPLOY / ".env.example").read_text(), re.MULTILINE))


def test_each_service_has_few_rights() -> None:
    """Ours cannot write to their root, have no capability, gain none, and only this machine reaches the page."""
    found = services()
    for name in OURS:
        one = found[name]
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in one
        assert "/var/run/docker.sock" not in json.dumps(one)
    assert all(port.startswith("127.0.0.1:") for one in found.values() for port in one.get("ports", ()))
    assert "ports" not in found["postgres"]


def test_what_it_asks_for_is_in_the_example_and_has_no_default_password() -> None:
    """The password has to be set, and is all that the file itself needs; what is in the example is a setting."""
    text = (DEPLOY / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)(\S)", text)) == {("POSTGRES_PASSWORD", ":")}
    assert set(re.findall(r"\$\{POSTGRES_PASSWORD(\S*)", text)) == {":?set"}
    assert example_variables() <= {one.variable for one in all_settings()} | {"POSTGRES_PASSWORD"}
    assert {"POSTGRES_PASSWORD", "EXPLORER_PRICE", "EXPLORER_CONTACT"} <= example_variables()


def environment_of(service: str, file: str) -> dict[str, str]:
    """The environment of a service with this file `.env`, by the rules of Compose: its own has precedence."""
    found = services()[service]
    variables = dict(line.split("=", 1) for line in file.splitlines())
    own = {name: substituted(value, variables) for name, value in found["environment"].items()}
    return (variables if {"path": ".env", "required": False} in found["env_file"] else {}) | own


@pytest.mark.parametrize("name", OURS)
def test_every_setting_of_the_file_reaches_each_service(name: str) -> None:
    """But for those that join the services; the password of the database is in its address alone."""
    known = {one.variable for one in all_settings()} | {*NETWORK_VARIABLES}
    file = "\n".join(f"{one}=set-by-{one}" for one in (*sorted(known), "POSTGRES_PASSWORD"))
    found = environment_of(name, file)
    assert {one for one in known if found.get(one) != f"set-by-{one}"} == JOINING
    assert found["EXPLORER_FLEET_DATABASE"] == "postgresql://explorer:set-by-POSTGRES_PASSWORD@postgres/explorer"
    assert (found["EXPLORER_FLEET_STORE"], found["POSTGRES_PASSWORD"]) == ("database", "")


def substituted(value: str, variables: dict[str, str]) -> str:
    """The value of a variable of the compose file, as Compose reads it."""
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda match: variables.get(match[1], ""), value)


class Container:
    """As near to a container as it goes without an engine: a read-only root, no rights, two folders to write to."""

    def __init__(self, folder: Path, name: str, database: str) -> None:
        self.data, state = folder / "data", folder / "state"
        for place in (self.data, state):
            place.mkdir(exist_ok=True)
        self.service = services()[name]
        given = environment_of(name, "EXPLORER_MODEL=auto\nEXPLORER_PRICE=")
        image = {"XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": "/tmp/cache", "PYTHONDONTWRITEBYTECODE": "1"}  # noqa: S108
        self.environment = clean_environment(folder / "home") | image | given | {"EXPLORER_FLEET_DATABASE": database}
        writable = [word for place in (self.data, state) for word in ("--bind", str(place), str(place))]
        self.cage = [
            "bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--die-with-parent",
            "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",  # noqa: S108
            *self._seen(folder), *writable,
            "--chdir", str(self.data), "--",
        ]  # fmt: skip

    @staticmethod
    def _seen(folder: Path) -> list[str]:
        """What has to be seen although /tmp is an empty one: the tests' folder and this checkout."""
        places = {str(place) for place in (folder, ROOT) if place.is_relative_to("/tmp")}  # noqa: S108
        return [word for place in sorted(places) for word in ("--ro-bind", place, place)]

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start the service's own command, or another one."""
        command = [*self.cage, str(SCRIPT), *(words or self.service["command"])]
        return subprocess.Popen(
            command, env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *words: str) -> str:
        """Run a command to its end, and return what it printed."""
        with self.start(*words) as process:
            said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
        return said


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


def can_be_caged() -> bool:
    """Whether bubblewrap works here."""
    if shutil.which("bwrap") is None:
        return False
    words = ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, check=False, capture_output=True, timeout=30).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_services_work_together(tmp_path: Path) -> None:
    """A question that is submitted in one container is explored in another one, and its report is read in a third."""
    pytest.importorskip("dbos", reason="the extra fleet is not installed")
    if not can_be_caged():
        pytest.skip("bubblewrap does not work here")
    with server() as postgres, ExitStack() as stack:
        container = {name: Container(tmp_path, name, postgres.url) for name in OURS}
        port = str(stack.enter_context(kept_port()))
        submitted = container["cli"].run("submit", "--sample", "What do people say about Tern TLS?")
        run_id = next(word for word in submitted.split() if "tern" in word)
        web = [port if word == "8777" else word for word in container["web"].service["command"]]
        page = stack.enter_context(container["web"].start(*web))
        worker = stack.enter_context(container["worker"].start())
        for process in (page, worker):
            stack.callback(process.kill)
        assert page.stdout is not None
        said = page.stdout.readline()
        token = re.search(r"token=([\w%-]+)", said)
        assert token is not None, said

        def status() -> str:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/api/runs?limit=5", headers={"Authorization": f"Bearer {token[1]}"}
            )
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                runs = json.load(answer)["runs"]
            return next((one["status"] for one in runs if one["run_id"] == run_id), "")

        until(lambda: status() == "complete")
        assert "Tern" in container["cli"].run("report", run_id)
        for process in (worker, page):
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=PATIENCE_S)
