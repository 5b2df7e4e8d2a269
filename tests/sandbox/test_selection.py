"""A sandbox is chosen because it was seen to hold; hosts that lack one are simulated by a filter over system calls."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.sandbox import landlock_launcher
from explorer.sandbox.bubblewrap import Bubblewrap
from explorer.sandbox.confinement import Launch, SandboxSpec, SandboxTier, Unconfined
from explorer.sandbox.landlock import is_offered
from explorer.sandbox.selection import candidates, choose_sandbox, missing, python_folders, remembered
from explorer.sandbox.self_test import NAMES, Attestation, attest
from sandbox.cages import cage

ROOT = Path(__file__).resolve().parents[2]
SHIM = """
import asyncio, ctypes, errno, json, struct, sys
from pathlib import Path
from explorer.kernel import bpf
from explorer.sandbox import seccomp
from explorer.sandbox.selection import choose_sandbox

def install(program):
    lines = ctypes.create_string_buffer(program, len(program))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(lines))
    assert libc.prctl(22, 2, head, 0, 0) == 0

def only(number, error):
    verdict = [bpf.line(bpf.RETURN, bpf.REFUSE | error)]
    lines = [bpf.line(bpf.LOAD, 0), *bpf.if_call(number, verdict)]
    return b"".join([*lines, bpf.line(bpf.RETURN, bpf.ALLOW)])

if "no namespaces" in sys.argv[1]:
    install(seccomp.program())
if "no Landlock" in sys.argv[1]:
    install(only(444, errno.ENOSYS))
chosen = asyncio.run(choose_sandbox(None))
print(json.dumps([chosen.confinement and chosen.confinement.tier, chosen.why]))
"""


def on_a_host(lacks: str, python: str = sys.executable, folder: Path = ROOT) -> tuple[str | None, str]:
    """What is chosen where something is not allowed: the tier, and why."""
    command = [python, "-c", SHIM, lacks]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200, cwd=folder)
    tier, why = json.loads(done.stdout)
    return tier, why


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_a_sandbox_stops_every_attack(tier: str) -> None:
    """All attempts to break out fail, and nothing of them is seen outside."""
    attestation = await attest(cage(tier), python_folders())
    assert [attempt.name for attempt in attestation.attempts] == list(NAMES)
    assert attestation.holds, attestation.words


class Disturbed(Bubblewrap):
    """A sandbox beside which another program calls a port that it takes for somebody else's."""

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Call the port, say something, and start the command."""
        found = re.search(r'"port": (\d+)', command)
        assert found
        for words in (b"", b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", int(found[1]))) as stranger:
                stranger.sendall(words)
        return super().launch(command, place)


async def test_who_else_calls_a_port_is_no_attacker() -> None:
    """On a busy machine a port may have had another owner, whose clients still call; the sandbox holds all the same."""
    cage("bubblewrap")
    attestation = await attest(Disturbed(str(shutil.which("bwrap"))), python_folders())
    assert attestation.holds, attestation.words


async def test_a_disk_that_cannot_be_written_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    """Nothing is believed of a sandbox that could not be tried, and the caller goes on to say what is wrong."""
    attestation = await attest(cage("bubblewrap"), python_folders(), beside=tmp_path / "missing")
    assert not attestation.holds
    assert attestation.words == "bubblewrap: it could not be tried (No such file or directory)"


@pytest.mark.slow
def test_a_python_named_by_a_path_that_goes_up_keeps_the_first_tier(tmp_path: Path) -> None:
    """Started as `../../env/bin/python`, the engine's Python is found in the sandbox as well."""
    python = f"{'../' * len(tmp_path.parts[1:])}{sys.executable.lstrip('/')}"
    assert on_a_host("", python, tmp_path) == on_a_host("")


@pytest.mark.slow
async def test_the_attacks_have_teeth() -> None:
    """Without a sandbox every one that its user can carry out succeeds, so their failing elsewhere means something."""
    attestation = await attest(Unconfined(), python_folders(), settle_s=0.1)
    assert not attestation.holds
    by_root = [] if os.geteuid() == 0 else ["write_kernel_settings"]
    assert [attempt.name for attempt in attestation.attempts if attempt.held] == by_root


@pytest.mark.slow
def test_as_an_ordinary_user_too() -> None:
    """The benchmark's rows for `nobody`: both tiers stop every attack where there is no root either."""
    command = [sys.executable, str(ROOT / "bench" / "sandbox.py"), "--runs", "3", "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    confined = [row for row in rows if row.get("tier", "unconfined") != "unconfined" and not row["problem"]]
    if not any(row["user"] == "user" for row in confined):
        pytest.skip("there is no system Python that `nobody` could use")
    assert [row["stopped"] for row in confined] == [len(NAMES)] * len(confined)


@pytest.mark.slow
def test_without_namespaces_landlock_is_taken() -> None:
    """A host like a container, where user namespaces and mounts answer EPERM, gets tier 2, attested."""
    cage("landlock")
    tier, why = on_a_host("no namespaces")
    assert tier == "landlock"
    assert f"stopped all of {len(NAMES)} attacks" in why


@pytest.mark.slow
def test_with_neither_there_is_no_shell() -> None:
    """Then nothing is chosen, and one line says why and how to get one."""
    tier, why = on_a_host("no namespaces, no Landlock")
    assert tier is None
    assert "apt install bubblewrap" in why or "allow bubblewrap" in why
    assert "\n" not in why


async def test_a_kernel_whose_landlock_promises_too_little_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Landlock's version 2 does not guard truncation: alone it is no sandbox, and the reason says what is needed."""
    monkeypatch.setattr(landlock_launcher, "landlock_version", lambda: 2)
    assert not is_offered()
    assert all(confinement.tier is not SandboxTier.LANDLOCK for confinement, _ in candidates())
    assert missing() == ["landlock: version 2 of this kernel is too old; 3 is needed (Linux 6.2)"]


async def test_another_system_is_shown_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no sandbox is known, such as on macOS, there is no shell, and the fix is a container."""
    monkeypatch.setattr(sys, "platform", "darwin")
    chosen = await choose_sandbox(None)
    assert chosen.confinement is None
    assert "container" in chosen.fix


async def test_doing_without_has_to_be_said() -> None:
    """Only the user's own word brings a shell without a sandbox."""
    chosen = await choose_sandbox(None, unsafe=True)
    assert chosen.confinement is not None
    assert chosen.confinement.tier is SandboxTier.UNCONFINED
    assert "set to unsafe" in chosen.why


def _notes(folder: Path) -> list[Path]:
    return list(folder.glob("sandbox-*.json"))


@pytest.mark.slow
async def test_an_attestation_is_kept_for_this_host(tmp_path: Path) -> None:
    """The second start believes the first; a damaged note, or one that did not hold, is not believed."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    first = await choose_sandbox(tmp_path)
    (note,) = _notes(tmp_path)
    assert remembered(note) == first.attestations[-1]
    note.write_text("{", encoding="utf-8")
    assert remembered(note) is None
    broken = first.attestations[-1].model_copy(update={"problem": "it does not hold"})
    note.write_text(broken.model_dump_json(), encoding="utf-8")
    assert remembered(note) is None
    assert (await choose_sandbox(tmp_path)).confinement is not None


def test_words_about_an_attestation() -> None:
    """One line names what succeeded, or why nothing could be tried."""
    nothing = Attestation(tier=SandboxTier.LANDLOCK, attempts=(), seconds=0, problem="it does not run here")
    assert nothing.words == "landlock: it does not run here"
    assert not nothing.holds
