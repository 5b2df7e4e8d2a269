"""Hostile commands in every sandbox that this machine has, as root and as an ordinary user, and what they use up.

The attempts of `command_attempts.py` are run together, once for each sandbox (`command_cage.py`); without a sandbox
all of them succeed, each for whom it can succeed at all.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

from attacks.attack import Attack
from attacks.command_attempts import ATTEMPTS
from attacks.command_cage import run, sandbox
from explorer.sandbox.confinement import MIB, SandboxSpec, SandboxTier, ShellLimits
from explorer.sandbox.control_group import is_available
from explorer.sandbox.landlock import is_offered
from explorer.sandbox.selection import python_folders, remember, remembered
from explorer.sandbox.self_test import Attestation, EscapeAttempt

HERE = Path(__file__).resolve().parent
SYSTEM_PYTHON = Path("/usr/bin/python3")
USER = "65534"
SECONDS = 120
BY_ROOT = frozenset(
    {
        *("make-device", "core-pattern", "swappiness", "drop-caches", "pid-max", "ptrace-scope", "interrupts"),
        *("control-groups", "kernel-log", "kernel-log-by-call", "system-folder", "raw-packets", "mount"),
        *("open-mount-tree", "new-file-system", "change-root", "load-bpf", "open-events", "reboot", "swap"),
        *("accounting", "host-name", "enter-namespace"),
    }
)
"""Attempts that an ordinary user cannot carry out without a sandbox either."""
NEEDS_ROOT = "only root's explorer has such a command"
ONLY_NUMBER = "Landlock does not look at stat(2), in any version: names, sizes and times can be asked for, one by one"


@dataclass(frozen=True)
class Cage:
    """A sandbox, for a user."""

    sandbox: str
    user: str
    version: int | None = None
    """The version of Landlock that the kernel is taken to have, 0 for none; None: its own."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.sandbox}-{self.user}" + ("" if self.version is None else f"-abi-{self.version}")

    def missing(self) -> str:
        """What this machine lacks for it."""
        if self.user == "root" and os.geteuid() != 0:
            return NEEDS_ROOT
        if self.user == "user" and os.geteuid() == 0 and not _has_same_python():
            return "a Python of the system, of the same version"
        if self.sandbox == "landlock":
            return "" if is_offered() else "Landlock"
        return "" if shutil.which("bwrap") else "bubblewrap"


CAGES = (
    Cage("bubblewrap", "root"),
    Cage("masked", "root"),
    Cage("bubblewrap", "user"),
    Cage("landlock", "root"),
    Cage("landlock", "user"),
    *(Cage("landlock", user, version) for user in ("root", "user") for version in (3, 4, 5)),
    *(Cage("bubblewrap", user, version) for user in ("root", "user") for version in (0, 3)),
)


@cache
def _has_same_python() -> bool:
    ask = [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2])"]
    found = subprocess.run(ask, capture_output=True, text=True, check=False)
    return found.stdout.strip() == str(tuple(sys.version_info[:2])) and shutil.which("setpriv") is not None


def _python_of(user: str) -> list[str]:
    """Return the words that start Python as root, or as an ordinary user."""
    if user == "root" or os.geteuid() != 0:
        return [sys.executable]
    packages = ":".join(path for path in sys.path if path.endswith("site-packages"))
    paths = f"PYTHONPATH={HERE.parents[1] / 'src'}:{HERE.parent}:{packages}"
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin"]
    return [*become, paths, "PYTHONDONTWRITEBYTECODE=1", str(SYSTEM_PYTHON)]


@cache
def outcome(cage: Cage) -> Mapping[str, bool]:
    """What each attempt gained there."""
    words = [*_python_of(cage.user), str(HERE / "command_cage.py")]
    words += [cage.sandbox, *([] if cage.version is None else [str(cage.version)])]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS, cwd="/")
    found: dict[str, bool] = json.loads(done.stdout)
    return found


def attempts() -> Iterator[Attack]:
    """Yield every attempt in every sandbox."""
    for cage in CAGES:
        for name in ATTEMPTS:
            if cage.user == "user" and name in BY_ROOT:
                continue
            is_residue = cage.sandbox == "landlock" and name == "stat-file"
            yield Attack(
                f"{cage.name}:{name}",
                f"{name.replace('-', ' ')}, by a command in {cage.name}",
                partial(_has_gained, cage, name),
                partial(_has_gained, Cage("none", cage.user), name),
                residue=ONLY_NUMBER if is_residue else "",
                missing=cage.missing,
                is_roots=cage.user == "root",
            )


def _has_gained(cage: Cage, name: str, _folder: Path) -> bool:
    return outcome(cage)[name]


SURVIVED = "over"
HOLD = "import time; x = bytearray(60 << 20); time.sleep(4); print('held')"
UNLINKED = (
    "import os, time; f = open('scratch/x', 'w+b'); os.unlink('scratch/x'); "
    "[f.write(bytes(1 << 20)) for _ in range(64)]; f.flush(); time.sleep(3)"
)
MAPPED = (
    "import mmap, os, time; f = open('scratch/x', 'w+b'); os.unlink('scratch/x'); f.truncate(64 << 20); "
    "m = mmap.mmap(f.fileno(), 64 << 20); f.close(); m.write(b'x' * (64 << 20)); time.sleep(3)"
)
DEEP = (
    "import os, time; os.chdir('scratch')\nfor _ in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    "open('big', 'wb').write(bytes(64 << 20)); time.sleep(2)"
)
SLEEPERS = (
    "import os, time; n = 0\ntry:\n for _ in range(300): n += bool(os.fork() or time.sleep(3))\nfinally: print(n)"
)


@dataclass(frozen=True)
class Flood:
    """A command that uses up too much of something."""

    command: str
    limits: Mapping[str, int]
    seconds: float = 20
    is_done: Callable[[Path, str], bool] = field(default=lambda _folder, said: SURVIVED in said)
    """Whether it got what it wanted, by the run's folder and its output."""
    has_limit: bool = True
    """Whether a limit can be set so high that nothing stops it; otherwise the control is bare bash."""


FLOODS = {
    "memory-of-many": Flood(
        f'for i in 1 2 3 4 5; do python3 -c "{HOLD}" & done; wait',
        {"memory_bytes": 150 * MIB},
        is_done=lambda _, said: said.splitlines().count("held") == 5,
    ),
    "memory-of-one": Flood(
        f"python3 -c 'x = bytearray(400 << 20)' && echo {SURVIVED}",
        {"memory_bytes": 300 * MIB},
    ),
    "processes": Flood(
        f'python3 -c "{SLEEPERS}"', {"processes": 64}, is_done=lambda _, said: "300" in said.split("\n")
    ),
    "counted-processes": Flood(f'python3 -c "{SLEEPERS}" && sleep 2 && echo {SURVIVED}', {"processes": 64}),
    "unlinked-files": Flood(f'python3 -c "{UNLINKED}"; echo {SURVIVED}', {"written_bytes": 8 * MIB}),
    "mapped-files": Flood(f'python3 -c "{MAPPED}"; echo {SURVIVED}', {"written_bytes": 8 * MIB}),
    "files": Flood(
        f"for i in $(seq 16); do head -c 4000000 /dev/zero > scratch/f$i; done; sleep 2; echo {SURVIVED}",
        {"written_bytes": 8 * MIB},
    ),
    "many-files": Flood(
        f"cd scratch; for i in $(seq 2000); do : > f$i; done; sleep 2; echo {SURVIVED}", {"written_files": 300}
    ),
    "many-folders": Flood(
        f"cd scratch; for i in $(seq 20); do mkdir -p $i/$(seq -s / 50); done; sleep 2; echo {SURVIVED}",
        {"written_files": 300},
    ),
    "deep-folders": Flood(
        f'python3 -c "{DEEP}"; echo {SURVIVED}',
        {"written_bytes": 8 * MIB},
        has_limit=False,
    ),
    "one-file": Flood(
        "head -c 30000000 /dev/zero > scratch/big",
        {"file_bytes": 8 * MIB},
        is_done=lambda folder, _: (folder / "scratch" / "big").stat().st_size == 30_000_000,
    ),
    "sparse-file": Flood(
        "truncate -s 1G scratch/sparse",
        {"file_bytes": 8 * MIB},
        is_done=lambda folder, _: (folder / "scratch" / "sparse").stat().st_size == 1 << 30,
    ),
    "output": Flood(
        f"head -c 40000000 /dev/zero; sleep 2; echo {SURVIVED}",
        {"output_bytes": MIB},
        is_done=lambda _, said: said.endswith(f"{SURVIVED}\n"),
    ),
    "processor": Flood(
        f"timeout 4 bash -c 'while :; do :; done'; [ $? = 124 ] && echo {SURVIVED}",
        {"cpu_s": 1},
    ),
    "open-files": Flood(
        f"python3 -c \"f = [open('/dev/null') for _ in range(400)]; print('{SURVIVED}')\"", {"open_files": 256}
    ),
    "time": Flood(f"trap '' TERM INT HUP; sleep 4; echo {SURVIVED} > scratch/late", {}, 1.0, lambda _f, _s: False),
}
PATIENCE_S = 60
"""Seconds that an attack has where nothing stops it: a busy machine is no guard."""
LARGE = 1 << 40
WIDE = ShellLimits(
    output_bytes=LARGE,
    written_bytes=LARGE,
    written_files=LARGE,
    file_bytes=LARGE,
    memory_bytes=LARGE,
    processes=4_000,
    open_files=1_024,
)


def _flood(name: str, flood: Flood, limits: ShellLimits, seconds: float) -> bool:
    with tempfile.TemporaryDirectory(prefix="explorer-flood-", dir="/tmp") as made:
        folder = Path(made).resolve()
        (folder / ".explorer").mkdir()
        (folder / "scratch").mkdir()
        output = folder / ".explorer" / "output"
        if name == "none" and not flood.has_limit:
            with output.open("wb") as file:
                subprocess.run(["/bin/bash", "-c", flood.command], stdout=file, cwd=folder, check=False, timeout=60)
        else:
            place = SandboxSpec(folder, limits, python_folders())
            asyncio.run(run(sandbox(name), place, flood.command, output, seconds))
        said = output.read_text(encoding="utf-8", errors="replace")
        return flood.is_done(folder, said) or (folder / "scratch" / "late").exists()


def floods() -> Iterator[Attack]:
    """Yield every flood in both tiers, for the user that runs the tests."""
    user = "root" if os.geteuid() == 0 else "user"
    for tier in ("bubblewrap", "landlock"):
        for name, flood in FLOODS.items():
            limits = replace(ShellLimits(), **dict(flood.limits))
            yield Attack(
                f"{tier}-{user}:use-up-{name}",
                f"more than the limit of {name.replace('-', ' ')}, by a command in {tier}",
                lambda _folder, tier=tier, flood=flood, limits=limits: _flood(tier, flood, limits, flood.seconds),
                lambda _folder, flood=flood: _flood("none", flood, WIDE, PATIENCE_S),
                missing=Cage(tier, user).missing,
            )


FLOOD = """
import sys
from attacks import commands
tier, name = sys.argv[1:]
flood = commands.FLOODS[name]
limits = commands.replace(commands.ShellLimits(), **dict(flood.limits))
sys.exit(commands._flood(tier, flood, limits, flood.seconds))
"""
WITHOUT_GROUPS = f"""
from explorer.sandbox.control_group import is_available
assert not is_available()
{FLOOD}"""
HIDING = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'


def _flood_without_groups(tier: str, name: str, _folder: Path) -> bool:
    """Run a flood where the machine delegates no control group: for root, in a mount namespace without them."""
    hidden = ("unshare", "--mount", "/bin/sh", "-c", HIDING, "sh") if os.geteuid() == 0 else ()
    words = (*hidden, sys.executable, "-c", WITHOUT_GROUPS, tier, name)
    return _is_flooded(words, {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))})


def _flood_as_user(tier: str, name: str, _folder: Path) -> bool:
    """Run a flood of an ordinary user's explorer, which root starts."""
    return _is_flooded((*_python_of("user"), "-c", FLOOD, tier, name), {})


def _is_flooded(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Run a program that floods; return whether nothing stopped it."""
    done = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=SECONDS, cwd="/")
    assert done.returncode in {0, 1}, done.stderr
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode == 1


def _what_hides_groups() -> str:
    """Return what this machine lacks to run a command without a control group."""
    if os.geteuid() == 0:
        return "" if shutil.which("unshare") else "unshare"
    return "a machine that delegates this user no control group" if is_available() else ""


def floods_without_groups() -> Iterator[Attack]:
    """Yield the floods that control groups stop, where there are none."""
    # Of root's number, the kernel limits no processes in the Landlock tier: they are counted at intervals, and a
    # command that has too many is stopped (SECURITY.md). In bubblewrap, none beyond the limit even starts.
    for tier, processes in (("bubblewrap", "processes"), ("landlock", "counted-processes")):
        for name in ("memory-of-many", processes):
            yield Attack(
                f"{tier}-no-group:use-up-{name}",
                f"more than the limit of {name.replace('-', ' ')} where no control group is delegated, in {tier}",
                partial(_flood_without_groups, tier, name),
                lambda _folder, flood=FLOODS[name]: _flood("none", flood, WIDE, PATIENCE_S),
                missing=_what_hides_groups,
            )


def floods_of_a_user() -> Iterator[Attack]:
    """Yield, for root, the floods that another guard stops where an ordinary user runs the engine."""
    for tier, name in product(("bubblewrap", "landlock"), ("memory-of-many", "processes") if os.geteuid() == 0 else ()):
        yield Attack(
            f"{tier}-user:use-up-{name}",
            f"more than the limit of {name.replace('-', ' ')}, by a command of an ordinary user in {tier}",
            partial(_flood_as_user, tier, name),
            lambda _folder, flood=FLOODS[name]: _flood("none", flood, WIDE, PATIENCE_S),
            missing=Cage(tier, "user").missing,
            is_roots=True,
        )


TRIED = Attestation(
    tier=SandboxTier.LANDLOCK, attempts=(EscapeAttempt(name="read_secret", held=True, said=""),), seconds=0.1
)


def _note(folder: Path) -> Path:
    """What this user's explorer keeps of a sandbox that holds."""
    path = folder / "cache" / "sandbox-0.json"
    remember(path, TRIED)
    return path


def _given_away(path: Path) -> None:
    os.chown(path, int(USER), int(USER))


def _linked(path: Path) -> None:
    path.rename(path.with_name("note"))
    path.symlink_to("note")


GIVES_AWAY = "only root can give a file away"
PLANTED: Mapping[str, Callable[[Path], object]] = {
    "of-another-user": _given_away,
    "in-a-folder-of-another-user": lambda path: _given_away(path.parent),
    "through-a-link": _linked,
    "that-all-may-write": lambda path: path.chmod(0o666),
    "in-a-folder-that-all-may-write": lambda path: path.parent.chmod(0o777),
    "that-did-not-hold": lambda path: path.write_text(TRIED.model_copy(update={"attempts": ()}).model_dump_json()),
}
"""What makes a note on a sandbox one that a stranger may have written."""


def planted_notes() -> Iterator[Attack]:
    """Yield every note that must not be believed, and the sandbox be tried again instead."""

    def is_believed(folder: Path, change: Callable[[Path], object]) -> bool:
        path = _note(folder)
        change(path)
        return remembered(path) is not None

    for name, change in PLANTED.items():
        yield Attack(
            f"note:{name}",
            f"a note that a sandbox held, {name.replace('-', ' ')}",
            partial(is_believed, change=change),
            partial(is_believed, change=Path.exists),
            missing=lambda name=name: GIVES_AWAY if "another-user" in name and os.geteuid() else "",
            is_roots="another-user" in name,
        )


ATTACKS = (*attempts(), *floods(), *floods_without_groups(), *floods_of_a_user(), *planted_notes())
