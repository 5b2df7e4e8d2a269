"""A document that captured the process that parses it: what its code tries there, with and without the walls.

The engine's own parser starts the process, and its own `main` runs in it; only the parsing itself is replaced by what a
fault in a parser amounts to: the document is code, and is run. The control is the same process without the walls.
"""

import asyncio
import ctypes
import os
import select
import socket
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attacks.attack import Attack
from explorer.documents.parsing.archives import opened_archive
from explorer.documents.parsing.confine import MACHINES
from explorer.documents.parsing.parser import Parser
from explorer.schema.errors import ToolError
from explorer.sources.hackernews.hackernews import HackerNews
from explorer.sources.threads import CommentRange
from sources.loopback import as_json, open_plain_web, serving

SECRET = "sesame-of-the-engine"
CAPTURED = """#!{python} -P
import ctypes, fcntl, json, mmap, os, resource, select, signal, socket, stat, subprocess, sys, threading
from explorer.documents.parsing import worker
from explorer.documents.parsing.document import ConfinementReport, Document

libc = ctypes.CDLL(None, use_errno=True)

def captured(kind, body, **_):
    names = dict(globals())
    try:
        exec(json.loads(body)[0] if kind == "comments" else body, names)
        said = "gained" if names["gained"] else "nothing"
    except BaseException as error:
        said = repr(error)
    return Document("", json.dumps([said]) if kind == "comments" else said)

worker.read_once = captured
leaked = os.open({secret!r}, os.O_RDONLY)
if not {is_confined}:
    os.closerange = lambda *_: None
    worker.confine = lambda: ConfinementReport(True, 7, "")
worker.main(*sys.argv[-3:-2], *map(int, sys.argv[-2:]))
"""
GET_DUMPABLE, SET_DUMPABLE = 3, 4


@dataclass(frozen=True)
class Outside:
    """What is around the process: things that it must not reach, and that notice when it does."""

    folder: Path
    bystander: subprocess.Popen[bytes]
    listeners: Mapping[str, socket.socket]
    memory: ctypes.Array[ctypes.c_char]

    @property
    def names(self) -> dict[str, object]:
        """What the document's code knows of it: more than an outsider would."""
        return {
            "SECRET": SECRET,
            "secret": str(self.folder / "secret"),
            "created": str(self.folder / "created"),
            "folder": str(self.folder),
            "bystander": self.bystander.pid,
            "engine": os.getpid(),
            "address": ctypes.addressof(self.memory),
            "tcp": self.listeners["tcp"].getsockname()[1],
            "udp": self.listeners["udp"].getsockname()[1],
            "unix": self.listeners["unix"].getsockname(),
            "abstract": self.listeners["abstract"].getsockname(),
        }

    def has_noticed(self) -> bool:
        """Whether something outside was reached, whatever the process says."""
        called, _, _ = select.select(list(self.listeners.values()), [], [], 0.05)
        return bool(called) or self.bystander.poll() is not None or (self.folder / "created").exists()


@contextmanager
def outside(folder: Path) -> Generator[Outside]:
    """A secret, listeners on four kinds of sockets, another process, and some memory of the engine's."""
    (folder / "secret").write_text(SECRET)
    kinds = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "unix": (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "socket")),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0explorer-{os.getpid()}-{folder.name}"),
    }
    listeners: dict[str, socket.socket] = {}
    bystander = subprocess.Popen(["/bin/sleep", "60"])
    libc = ctypes.CDLL(None)
    was_dumpable = libc.prctl(GET_DUMPABLE, 0, 0, 0, 0)
    # The engine hides what it holds from others of its user, which is another guard than the one that is tried here.
    libc.prctl(SET_DUMPABLE, 1, 0, 0, 0)
    try:
        for name, (family, kind, address) in kinds.items():
            listener = listeners[name] = socket.socket(family, kind)
            listener.bind(address)
            if kind == socket.SOCK_STREAM:
                listener.listen()
        yield Outside(folder, bystander, listeners, ctypes.create_string_buffer(SECRET.encode()))
    finally:
        libc.prctl(SET_DUMPABLE, was_dumpable, 0, 0, 0)
        bystander.kill()
        bystander.wait()
        for listener in listeners.values():
            listener.close()


Parse = Callable[[Parser, str], Awaitable[str]]


def gained(folder: Path, code: str, *, is_confined: bool, parse: Parse | None = None) -> bool:
    """Have the engine parse a document that captures its process; return whether its code gained anything."""
    python = folder / "python"
    secret = str(folder / "secret")
    python.write_text(CAPTURED.format(python=sys.executable, secret=secret, is_confined=is_confined))
    python.chmod(stat.S_IRWXU)
    with outside(folder) as world:
        known = "".join(f"{name} = {value!r}\n" for name, value in world.names.items())
        said = asyncio.run(_parsed(str(python), known + code, parse or _as_document))
        return said == "gained" or world.has_noticed()


async def _parsed(python: str, body: str, parse: Parse) -> str:
    async with Parser(python=python) as parser:
        with suppress(ToolError):  # a process that became another program answers no more
            return await parse(parser, body)
    return ""


async def _as_document(parser: Parser, body: str) -> str:
    return (await parser.parse("json", body.encode())).text


async def _as_comment(parser: Parser, body: str) -> str:
    """Give the code as the HTML of a comment on Hacker News, which is read like any other thread."""
    item = {"id": 5, "type": "story", "title": "A story", "children": [{"id": 6, "author": "ada", "text": body}]}
    with serving({"/api/items/5": as_json(item), "/v0/item/5.json": as_json(None)}) as site:
        async with open_plain_web() as web:
            hackernews = HackerNews(web, parser, f"{site.url}/v0", f"{site.url}/api")
            thread = await hackernews.thread(5, CommentRange())
    return thread.comments[0].text


UNPACKING = """#!{python} -P
import sys
from explorer.documents.parsing import unpack_worker as worker
from explorer.documents.parsing.document import ConfinementReport

def captured(archive, frames, max_bytes):
    try:
        found = open({secret!r}, "rb").read()
    except OSError:
        found = b""
    worker._send_header(frames, worker.ArchiveHeader("20260101-000000-a/report.md", True, len(found)))
    frames.write(found)
    worker._send_header(frames, worker.ArchiveHeader(is_end=True))

worker.send_entries = captured
if not {is_confined}:
    worker.confine = lambda: ConfinementReport(True, 7, "")
worker.main(*sys.argv[-4:-3], *map(int, sys.argv[-3:]))
"""


def unpacks_secret(folder: Path, *, is_confined: bool) -> bool:
    """Open an archive that captures the process that reads it; return whether a file of the user is in the run then."""
    secret, python, archive = (folder / name for name in ("secret", "python", "run.tar.gz"))
    secret.write_text(SECRET)
    archive.touch()
    python.write_text(UNPACKING.format(python=sys.executable, secret=str(secret), is_confined=is_confined))
    python.chmod(stat.S_IRWXU)
    with opened_archive(archive, 1_000_000, str(python)) as entries:
        return SECRET.encode() in b"".join(entry.read(100) for entry in entries)


def _needs_root() -> str:
    return "" if os.geteuid() == 0 else "only root has these rights to lose"


def _needs_tracing() -> str:
    """Return why an ordinary user cannot debug a process of its own that is no child; empty where it can."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    is_free = os.geteuid() == 0 or not scope.exists() or scope.read_text(encoding="ascii").strip() == "0"
    return "" if is_free else "this machine lets a user debug children only"


def _needs_namespaces() -> str:
    """Return why an ordinary user cannot make namespaces; empty where it can."""
    words = ["unshare", "--user", "true"]
    is_free = os.geteuid() == 0 or subprocess.run(words, check=False, capture_output=True).returncode == 0
    return "" if is_free else "this machine lets only root make namespaces"


def _needs_filter() -> str:
    is_known = sys.platform == "linux" and os.uname().machine in MACHINES
    return "" if is_known else "this machine has no seccomp that is known here"


def _attack(name: str, tried: str, code: str, missing: Callable[[], str] = _needs_filter) -> Attack:
    return Attack(
        name,
        tried,
        partial(gained, code=code, is_confined=True),
        partial(gained, code=code, is_confined=False),
        missing=missing,
        is_roots=missing is _needs_root,
    )


CONNECT = """
with socket.socket({family}, {kind}) as one:
    one.connect({address})
    one.send(b"hello")
gained = True
"""
TCP = CONNECT.format(family="socket.AF_INET", kind="socket.SOCK_STREAM", address='("127.0.0.1", tcp)')
UDP = CONNECT.format(family="socket.AF_INET", kind="socket.SOCK_DGRAM", address='("127.0.0.1", udp)')
UNIX = CONNECT.format(family="socket.AF_UNIX", kind="socket.SOCK_STREAM", address="unix")
ABSTRACT = CONNECT.format(family="socket.AF_UNIX", kind="socket.SOCK_STREAM", address="abstract")
MEMORY = """
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

own = ctypes.create_string_buffer(len(SECRET))
here, there = Piece(ctypes.addressof(own), len(SECRET)), Piece(address, len(SECRET))
libc.process_vm_readv(engine, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
gained = own.raw.decode("latin-1") == SECRET
"""
UNSHARE = "gained = libc.unshare(0x10000000) == 0"
FORK = """
child = os.fork()
if child == 0:
    os._exit(7)
gained = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
PROTECT = """
own = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
place = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(own)))
gained = libc.mprotect(place, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC) == 0
"""
TRACE = """
gained = libc.ptrace(0x4206, bystander, 0, 0) == 0
libc.ptrace(17, bystander, 0, 0)
"""
SHARED_MEMORY = """
segment = libc.shmget(0, 4096, 0o600 | 0o1000)
gained = segment >= 0
libc.shmctl(segment, 0, None)
"""
DESCRIPTORS = """
found = []
for name in os.listdir(f"/proc/{engine}/fd"):
    try:
        found.append(os.open(f"/proc/{engine}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        pass
gained = bool(found)
"""
INHERITED = """
found = b""
for descriptor in range(3, 64):
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            found += os.read(descriptor, 100)
    except OSError:
        pass
gained = SECRET.encode() in found
"""
TIMER = """
fcntl.fcntl(0, fcntl.F_SETOWN, bystander)
gained = fcntl.fcntl(0, fcntl.F_GETOWN) == bystander
"""
THREAD = """
seen = []
one = threading.Thread(target=seen.append, args=(1,))
one.start()
one.join()
gained = bool(seen)
"""

ATTACKS = [
    _attack("read-a-file", "It reads a file of the user.", "gained = SECRET in open(secret).read()"),
    Attack(
        "comment-reads-a-file",
        "A comment captures the process that parses it, and reads a file of the user.",
        partial(gained, code="gained = SECRET in open(secret).read()", is_confined=True, parse=_as_comment),
        partial(gained, code="gained = SECRET in open(secret).read()", is_confined=False, parse=_as_comment),
        missing=_needs_filter,
    ),
    _attack("list-a-folder", "It lists a folder.", 'gained = "secret" in os.listdir(folder)'),
    _attack("look-at-a-file", "It asks whether a file exists, and its size.", "gained = os.stat(secret).st_size > 0"),
    _attack(
        "create-a-file", "It creates a file.", "os.close(os.open(created, os.O_CREAT | os.O_WRONLY)); gained = True"
    ),
    _attack("remove-a-file", "It removes a file.", "os.unlink(secret); gained = True"),
    _attack("rename-a-file", "It moves a file.", "os.rename(secret, created); gained = True"),
    _attack("connect-tcp", "It connects to a port on this machine.", TCP),
    _attack("send-udp", "It sends a datagram, as a question for a name is one.", UDP),
    _attack("connect-unix", "It connects to a socket in a folder, such as that of a container engine.", UNIX),
    _attack("connect-abstract", "It connects to an abstract socket, which no folder guards.", ABSTRACT),
    _attack("start-a-process", "It starts a process that would outlive it.", FORK),
    _attack("start-a-thread", "It starts a thread.", THREAD),
    _attack("run-a-program", "It becomes another program.", 'os.execv("/usr/bin/touch", ["touch", created])'),
    _attack("run-from-memory", "It makes a file in memory to run it.", 'gained = os.memfd_create("x") >= 0'),
    _attack(
        "code-in-memory",
        "It makes memory that is executable.",
        "mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC); gained = True",
    ),
    _attack("code-made-executable", "It makes memory that it wrote executable.", PROTECT),
    _attack("kill-another", "It ends another process of the user.", "os.kill(bystander, 9); gained = True"),
    _attack("signal-the-engine", "It sends the engine a signal.", "os.kill(engine, 0); gained = True"),
    _attack("trace-another", "It attaches to another process as a debugger.", TRACE, _needs_tracing),
    _attack("engine-memory", "It reads the engine's memory, where the keys are.", MEMORY, _needs_tracing),
    _attack(
        "engine-environment",
        "It reads the environment of the engine.",
        'gained = bool(open(f"/proc/{engine}/environ", "rb").read())',
    ),
    _attack("engine-descriptors", "It opens the engine's files through /proc.", DESCRIPTORS),
    _attack(
        "engine-limits",
        "It changes a limit of the engine.",
        "resource.prlimit(engine, resource.RLIMIT_CORE, resource.prlimit(engine, resource.RLIMIT_CORE)); gained = True",
    ),
    _attack(
        "engine-priority",
        "It changes the engine's priority.",
        "os.setpriority(os.PRIO_PROCESS, engine, os.getpriority(os.PRIO_PROCESS, engine)); gained = True",
    ),
    _attack(
        "own-limits",
        "It changes its own limits.",
        "resource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK)); gained = True",
    ),
    _attack("inherited-descriptors", "It reads a file that was open when the process started.", INHERITED),
    _attack("root-again", "It becomes root again.", "os.setresuid(0, 0, 0); gained = True", _needs_root),
    _attack("new-namespace", "It makes namespaces of its own.", UNSHARE, _needs_namespaces),
    _attack(
        "own-memory-shown",
        "It writes to its own entry in /proc.",
        'os.close(os.open("/proc/self/oom_score_adj", os.O_WRONLY)); gained = True',
    ),
    _attack("signal-by-descriptor", "It has the kernel signal another process when its pipe is ready.", TIMER),
    _attack("shared-memory", "It leaves memory for others that outlives it.", SHARED_MEMORY),
    _attack("watch-files", "It watches files of the user for changes.", "gained = libc.inotify_init() >= 0"),
    Attack(
        "archive-takes-a-file",
        "An archive captures the process that unpacks it, and takes a file of the user into the run.",
        partial(unpacks_secret, is_confined=True),
        partial(unpacks_secret, is_confined=False),
        missing=_needs_filter,
    ),
    _attack("pair-of-sockets", "It makes a pair of sockets.", "socket.socketpair(); gained = True"),
]
