"""What a confined command can reach: its own folder, and nothing else; on every tier, beside a control without one."""

import asyncio
import gc
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import which

import pytest

from explorer.sandbox.bubblewrap import SETTINGS
from explorer.sandbox.shell import STOPPED, TIMED_OUT
from sandbox.cages import living, room

TIERS = ("bubblewrap", "landlock")
CANARY = "canary-5f0c1d"


@pytest.fixture
def mark() -> str:
    """A number of seconds that no other process of this machine sleeps for."""
    return f"9{time.monotonic_ns() % 10**9}.25"


@pytest.mark.parametrize("tier", TIERS)
async def test_no_key_of_the_engine_can_be_read(tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the command's own environment nor anybody's in /proc holds what the engine's environment holds."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TAVILY_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOME", "MY_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    command = f"env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/$PPID/environ; cat /proc/{os.getpid()}/environ"
    async with room(tier, tmp_path) as cell:
        _, stated = await cell.run(command)
    assert CANARY not in stated


async def test_without_a_sandbox_a_key_is_read(tmp_path: Path) -> None:
    """The control: the same look at another process finds what it holds."""
    holder = await asyncio.create_subprocess_exec("/bin/sleep", "30", env={"KEY": CANARY})
    try:
        async with room("unconfined", tmp_path) as cell:
            _, stated = await cell.run(f"cat /proc/{holder.pid}/environ")
    finally:
        holder.kill()
        await holder.wait()
    assert CANARY in stated


@pytest.mark.parametrize("tier", TIERS)
async def test_files_outside_are_neither_read_nor_written(tier: str, tmp_path: Path) -> None:
    """Neighbouring runs, the home folder, the user list and the project's settings stay out of reach and unchanged."""
    outside = tmp_path / "other-run" / "journal.jsonl"
    outside.parent.mkdir()
    outside.write_text(CANARY, encoding="utf-8")
    (tmp_path / ".env").write_text(CANARY, encoding="utf-8")
    async with room(tier, tmp_path) as cell:
        _, stated = await cell.run(
            f"cat {outside} ../other-run/journal.jsonl ../.env /etc/passwd ~root/.ssh/id_rsa; ls {tmp_path}/..;"
            f"echo x > {outside}; echo x > ../new; echo x > /usr/x; echo x > ~/../x; ln -s {outside} scratch/link;"
            "cat scratch/link; echo x >> scratch/link; echo x > .explorer/journal.jsonl"
        )
    assert CANARY not in stated
    assert "root:" not in stated
    assert outside.read_text(encoding="utf-8") == CANARY
    assert not (tmp_path / "new").exists()
    assert not (cell.folder / ".explorer" / "journal.jsonl").exists()


async def test_without_a_sandbox_files_outside_are_written(tmp_path: Path) -> None:
    """The control."""
    async with room("unconfined", tmp_path) as cell:
        await cell.run("echo x > ../new")
    assert (tmp_path / "new").exists()


OPEN = """
import os
found = []
for number in range(3, 256):
    try:
        os.fstat(number)
    except OSError:
        continue
    found.append(number)
print("open", found)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", [*TIERS, "unconfined"])
async def test_no_open_file_of_the_engine_is_handed_on(tier: str, tmp_path: Path) -> None:
    """A command has its input and its output only, not the namespace it is started in; what it opens is seen."""
    async with room(tier, tmp_path) as cell:
        (cell.folder / "look.py").write_text(OPEN, encoding="utf-8")
        _, stated = await cell.run(f"{sys.executable} look.py; exec 77</dev/null; {sys.executable} look.py")
    assert stated.splitlines()[-2:] == ["open []", "open [77]"]


HIDDEN = """
import asyncio, ctypes, sys, tempfile
from pathlib import Path
from sandbox.cages import room
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)

async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with room("bubblewrap", Path(folder).resolve()) as cell:
            print((await cell.run("id -u; touch made && echo made"))[1])

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not which("setpriv"), reason="only root has this right to lose")
def test_an_engine_that_hides_itself_without_the_right_to_look_has_a_sandbox(tmp_path: Path) -> None:
    """As in some containers of root's: its children cannot reach what it holds by a path, and are handed it."""
    if not which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    paths = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    words = ["setpriv", "--bounding-set=-sys_ptrace", sys.executable, "-c", HIDDEN]
    done = subprocess.run(words, env={**os.environ, **paths}, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.split() == ["1000", "made"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_settings_of_the_system_are_as_outside_and_stay_so(tier: str, tmp_path: Path) -> None:
    """Also those that are copied: what a command reads is the file, and none of them can be changed or made."""
    outside = _settings()
    paths = " ".join(outside)
    async with room(tier, tmp_path) as cell:
        _, sums = await cell.run(f"sha256sum {paths}")
        _, stated = await cell.run(f"for path in {paths} /etc/new; do echo x >> $path && echo written; done")
    assert "written" not in stated
    assert sums.splitlines() == [f"{digest}  {path}" for path, digest in outside.items()]


def _settings() -> dict[str, str]:
    """The SHA-256 of each file of /etc that commands may read."""
    paths = [Path("/etc", name) for name in SETTINGS if Path("/etc", name).is_file()]
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths}


NETWORK = """
import json, socket, sys
port, path, abstract = json.loads(sys.argv[1])
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)),
    (socket.AF_INET, socket.SOCK_RAW, ("127.0.0.1", 0)),
    (socket.AF_UNIX, socket.SOCK_STREAM, path),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + abstract),
):
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(1)
            client.connect(address)
            client.send(b"x")
            print("reached", address)
    except OSError as error:
        print("refused", error)
try:
    print("reached", socket.getaddrinfo("example.com", 80))
except OSError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("tier", [*TIERS, "unconfined"])
async def test_there_is_no_network(tier: str, tmp_path: Path) -> None:
    """TCP, UDP, raw sockets, names and unix sockets lead nowhere; without a sandbox they lead to our listeners."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as path,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        name = f"explorer-test-{os.getpid()}-{time.monotonic_ns()}"
        path.bind(str(tmp_path / "docker.sock"))
        abstract.bind(f"\0{name}")
        for server in (tcp, path, abstract):
            server.listen()
            server.settimeout(0.05)
        aims = json.dumps([tcp.getsockname()[1], str(tmp_path / "docker.sock"), name])
        async with room(tier, tmp_path) as cell:
            (cell.folder / "look.py").write_text(NETWORK, encoding="utf-8")
            _, stated = await cell.run(f"{sys.executable} look.py '{aims}'")
        reached = sum(_has_visitor(server) for server in (tcp, path, abstract))
    if tier == "unconfined":
        assert reached == 3
    else:
        assert reached == 0
        # A datagram to a port of one's own empty network is "sent": the kernel throws it away.
        assert "reached" not in stated.replace(f"reached ('127.0.0.1', {json.loads(aims)[0]})", "", 1)


def _has_visitor(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("ends", ["in time", "too late"])
async def test_nothing_is_left_behind(tier: str, ends: str, mark: str, tmp_path: Path) -> None:
    """Processes that hide from signals, sessions and terminals are gone soon after the end, however it came."""
    leave = f"(setsid sleep {mark} &); nohup setsid bash -c 'sleep {mark} & sleep {mark}' & echo done"
    command = leave if ends == "in time" else f"trap '' TERM INT HUP; {leave}; sleep {mark}"
    async with room(tier, tmp_path) as cell:
        began = time.monotonic()
        ended, stated = await cell.run(command, 5 if ends == "in time" else 0.5)
    assert ended.reason == ("" if ends == "in time" else TIMED_OUT)
    assert "done" in stated
    # What hides sleeps for hours: both are only bounds for a busy machine.
    assert time.monotonic() - began < 30
    await _gone(mark, 20)


def _open_files() -> int:
    """Count the files that are open; fewer later is no leak, what an earlier test left may be closed meanwhile."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


async def _gone(mark: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while living(mark):  # noqa: ASYNC110 - processes send no event
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_without_a_sandbox_something_is_left_behind(mark: str, tmp_path: Path) -> None:
    """The control: a process in a session of its own outlives the call."""
    async with room("unconfined", tmp_path) as cell:
        await cell.run(f"(setsid sleep {mark} &); sleep 0.3; echo done", 5)
    left = living(mark)
    for pid in left:
        os.kill(pid, 9)
    assert left


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_a_cancelled_command_is_gone(tier: str, mark: str, tmp_path: Path) -> None:
    """Cancelling leaves no process, no task and no open file."""
    async with room(tier, tmp_path) as cell:
        await cell.run("true")
        open_files = _open_files()
        task = asyncio.ensure_future(cell.run(f"sleep {mark}"))
        async with asyncio.timeout(20):
            while not living(mark):  # noqa: ASYNC110 - processes send no event
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _gone(mark, 2)
        assert len(asyncio.all_tasks()) == 1
        assert _open_files() <= open_files


@pytest.mark.slow
@pytest.mark.parametrize("cancels", [15, 200])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_command_cancelled_while_it_is_being_started_is_gone(tier: str, cancels: int, tmp_path: Path) -> None:
    """Whenever it is cancelled: the sandbox may hold nothing yet, half of it, or the command."""
    dice = random.Random(cancels)  # noqa: S311 - moments, no secrets
    marks = [f"9{time.monotonic_ns() % 10**9}.{number}" for number in range(cancels)]
    async with room(tier, tmp_path) as cell:
        await cell.run("true")
        for mark in marks:
            task = asyncio.ensure_future(cell.run(f"sleep {mark}"))
            await asyncio.sleep(0.03 * dice.random())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    for mark in marks:
        await _gone(mark, 2)


ENGINE = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from sandbox.cages import room

async def main():
    async with room(sys.argv[1], Path(sys.argv[2])) as cell:
        background = await cell.shell.start(f"sleep {sys.argv[4]}", cell.output)
        await cell.run(f"sleep {sys.argv[4]}")

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_a_killed_engine_takes_its_commands_along(tier: str, mark: str, tmp_path: Path) -> None:
    """One second after `kill -9` of the engine neither the foreground nor the background command lives."""
    words = ["-c", ENGINE, tier, str(tmp_path), str(Path(__file__).parents[1]), mark]
    engine = await asyncio.create_subprocess_exec(sys.executable, *words)
    async with asyncio.timeout(20):
        while len([pid for pid in living(f"sleep\0{mark}") if pid != engine.pid]) < 2:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.02)
    engine.kill()
    await engine.wait()
    await _gone(f"sleep\0{mark}", 1)


async def test_a_worker_thread_may_not_start_commands(tmp_path: Path) -> None:
    """The kernel would end them with the thread, so it is refused loudly."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(_start(tmp_path))
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert "main thread" in str(raised[0])


async def _start(folder: Path) -> None:
    async with room("unconfined", folder) as cell:
        await cell.run("true")


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_a_fork_bomb_is_bounded(tier: str, tmp_path: Path) -> None:
    """It runs against its limit, ends, and the engine's heart goes on beating."""
    async with room(tier, tmp_path) as cell:
        late = 0.0

        async def beat() -> None:
            nonlocal late
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.05)
                late = max(late, time.monotonic() - began - 0.05)

        heart = asyncio.ensure_future(beat())
        began = time.monotonic()
        await cell.run(":(){ :|:& };: ", 3)
        heart.cancel()
    assert time.monotonic() - began < 30
    # A heart that stood still for the whole of the bomb would be 3 s late.
    assert late < 2.5


BOUNDS = {
    "output": ("yes | head -c 200M", "printed more than"),
    "many files": ("cd scratch; for i in $(seq 100000); do : > f$i; done", "wrote more than 300 files"),
    "big files": ("for i in 1 2 3 4; do dd if=/dev/zero of=scratch/b$i bs=1M count=10000; done", "bytes"),
    "big files before anybody looks": ("for i in 1 2 3; do head -c 6000000 /dev/zero > scratch/b$i; done", "bytes"),
    "many folders before anybody looks": (
        "cd scratch; mkdir $(seq 400)",
        "wrote more than 300 files",
    ),
    "many files before anybody looks": (
        "cd scratch; for i in $(seq 400); do : > f$i; done",
        "wrote more than 300 files",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("what", BOUNDS)
async def test_what_takes_too_much_is_stopped(tier: str, what: str, tmp_path: Path) -> None:
    """Floods of output and of files end within seconds, with the reason, and the folder stays readable."""
    command, reason = BOUNDS[what]
    async with room(tier, tmp_path) as cell:
        began = time.monotonic()
        ended, _ = await cell.run(command, 15)
    assert reason in ended.reason
    assert time.monotonic() - began < 30
    assert list(cell.folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_a_file_and_a_process_have_bounds(tier: str, tmp_path: Path) -> None:
    """A sparse file of a terabyte and eight gigabytes of memory are refused by the kernel."""
    command = (
        "truncate -s 1T scratch/sparse; python3 -c 'x = bytearray(8 << 30)'; ulimit -f unlimited; ulimit -v 9999999"
    )
    async with room(tier, tmp_path) as cell:
        ended, stated = await cell.run(command)
    assert not ended.reason
    assert "MemoryError" in stated or "annot allocate" in stated
    assert (cell.folder / "scratch" / "sparse").stat().st_size < 1 << 40


CALLS = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (425, 250, 272, 165, 321, 298, 323), "aarch64": (425, 219, 97, 40, 280, 241, 282)}
for number in numbers[platform.machine()]:
    result = libc.syscall(number, 0x10000000 if number in (272, 97) else 1, 0, 0, 0, 0)
    print(number, result, os.strerror(ctypes.get_errno()))
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_calls_that_lead_deeper_into_the_kernel_are_refused(tier: str, tmp_path: Path) -> None:
    """Namespaces, mounts, io_uring, keys, BPF, perf and userfaultfd answer EPERM; threads, git and pipes work."""
    async with room(tier, tmp_path) as cell:
        (cell.folder / "calls.py").write_text(CALLS, encoding="utf-8")
        _, stated = await cell.run("python3 calls.py")
        _, works = await cell.run(
            "git --version && seq 3 | sort -r | paste -sd, && "
            "python3 -c 'import threading; t = threading.Thread(target=print, args=(42,)); t.start(); t.join()'"
        )
    lines = stated.splitlines()
    assert len(lines) == 7
    assert all(line.split()[1] == "-1" and "not permitted" in line for line in lines)
    assert "git version" in works
    assert "3,2,1" in works
    assert "42" in works


@pytest.mark.slow
async def test_landlock_is_a_second_wall_inside_bubblewrap(tmp_path: Path) -> None:
    """What the mounts would allow, such as a new name for the own process, Landlock refuses; without it, it is done."""
    async with room("bubblewrap", tmp_path) as cell:
        _, held = await cell.run("echo other > /proc/self/comm && echo done")
        cell.shell.place = replace(cell.shell.place, readable=())
        _, without = await cell.run("echo other > /proc/self/comm && echo done")
    if not Path(sys.base_prefix).is_relative_to("/usr"):  # there, the wall does not need a folder of its own
        assert "done" in without
    assert "done" not in held


USUAL = """
cd scratch; set -e
printf 'echo hi' > a.sh; chmod +x a.sh; ./a.sh; touch -d 2020-01-01 a.sh; mkdir d e; cp -p a.sh d/
tar cf x.tar d; tar xf x.tar --no-same-owner -C e; [ -x e/d/a.sh ] && [ e/d/a.sh -ot x.tar ]
git init -q g; cd g; echo x > f; git add f; git -c user.name=a -c user.email=a@b commit -qm logged; git log --format=%s
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_usual_programs_work(tier: str, tmp_path: Path) -> None:
    """Modes and times of own files are changed: a script runs, an archive is unpacked, a commit is made."""
    async with room(tier, tmp_path) as cell:
        ended, stated = await cell.run(USUAL)
    assert ended.exit_code == 0, stated
    assert "hi" in stated
    assert "logged" in stated


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_there_is_no_terminal(tier: str, tmp_path: Path) -> None:
    """Nothing can be typed into the terminal of whoever runs the engine."""
    type_a_letter = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    async with room(tier, tmp_path) as cell:
        _, stated = await cell.run(f'tty; python3 -c "{type_a_letter}"; (echo x > /dev/tty) 2>&1')
    assert "not a tty" in stated
    assert "Error" in stated
    assert "No such device" in stated or "No such file" in stated or "ermission denied" in stated


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_many_at_once(tier: str, tmp_path: Path) -> None:
    """Ten commands side by side each get their own output, and no file stays open."""
    async with room(tier, tmp_path) as cell:
        await cell.run("true")
        open_files = _open_files()
        outputs = [cell.folder / ".explorer" / f"o{number}" for number in range(10)]
        async with asyncio.TaskGroup() as group:
            for number, output in enumerate(outputs):
                group.create_task(cell.shell.run(f"echo {number}", output, 30))
        assert [output.read_text(encoding="utf-8") for output in outputs] == [f"{number}\n" for number in range(10)]
        assert _open_files() <= open_files


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_what_was_written_is_told(tier: str, tmp_path: Path) -> None:
    """New and changed files of the run's folder are listed, untouched and the engine's own are not."""
    async with room(tier, tmp_path) as cell:
        (cell.folder / "scratch" / "old.txt").write_text("old", encoding="utf-8")
        (cell.folder / "scratch" / "kept.txt").write_text("kept", encoding="utf-8")
        ended, _ = await cell.run("cd scratch; echo new > new.txt; echo more >> old.txt; mkdir a; echo 1 > a/b.csv")
    assert ended.exit_code == 0
    assert ended.files == ("scratch/a/b.csv", "scratch/new.txt", "scratch/old.txt")


async def test_closing_ends_what_runs(mark: str, tmp_path: Path) -> None:
    """A shell that is closed leaves no command, and each knows why it ended."""
    async with room("landlock", tmp_path) as cell:
        command = await cell.shell.start(f"sleep {mark}", cell.output)
    assert command.ended is not None
    assert command.ended.reason == STOPPED
    await _gone(mark, 2)
