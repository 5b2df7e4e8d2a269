"""Confines a command with Landlock, as a program of its own: alone (tier 2), or as the second wall inside bubblewrap.

    python -I -S -c STARTER FOLDER enter|supervise [limit=NAME:N] [read=PATH] [write=PATH] ... -- COMMAND...

Confining is for ever, so it cannot be done in the engine, and what is confined must not hold the engine's memory.
`enter` limits itself and becomes the command. `supervise` stays outside: it ends all that the command leaves behind,
and changes modes and times of files for it (`file_metadata.py`), because Landlock lets them be changed anywhere.
Every command waits for this program to start, so it imports little: `ctypes`, `signal` and `json` would take 20 ms,
and `os` and `struct` 3 ms, of which it needs what `posix` has.
"""

import _ctypes
import posix
import resource
from errno import EPERM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from explorer.sandbox import file_metadata

SET_DEATH_SIGNAL, DROP_FROM_BOUND, SET_SECURE_BITS = 1, 24, 28
SET_SUBREAPER, SET_NO_NEW_PRIVILEGES, AMBIENT, AMBIENT_CLEAR = 36, 38, 47, 4
SECURE_BITS = 0b101111
"""Root's number gives no capabilities, and nothing of it can be changed back."""
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
SET_CAPABILITIES = {"x86_64": 126, "aarch64": 91}
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_FILTER, NEW_LISTENER = 1, 8
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
BENEATH = 1
LIST = 1 << 3
READING = 0b1101  # execute, read files, list folders
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
READ_AND_WRITE = 0b0110
ORDERS_TO_DEVICES = 1 << 15
OF_FILES = ORDERS_TO_DEVICES | 1 << 14 | 0b0111
"""Rights that a rule on a file may have: besides orders, truncating, executing, writing and reading."""
DEVICE_FILES = 1 << 6 | 1 << 11
SPECIAL_FILES = DEVICE_FILES | 1 << 9 | 1 << 10 | ORDERS_TO_DEVICES
"""Devices, sockets and pipes made in the folder, and orders to devices."""
RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
RIGHTS_SINCE_5 = 0xFFFF
TCP = 0b11
TCP_SINCE = 4
SCOPES = 0b11
SCOPES_SINCE = 6
"""Landlock's version that confines signals and abstract sockets to the command's own processes (Linux 6.12)."""
NEEDED = 3
"""Landlock's version (Linux 6.2) since which it decides every way to change a file's content or place."""
OF_TASKS = "RLIMIT_NPROC"
GATE_BYTES = 16
FAILED = 126
SIGNALLED = 128
HANGUP, INTERRUPT, KILL, PIPE, TERMINATE, STOP, FILE_SIZE = 1, 2, 9, 13, 15, 19, 25
IGNORE = 1
CHECK_MS = 1_000
STARTER = "import sys; sys.path.append(sys.argv.pop(1)); import landlock_launcher as l; sys.exit(l.main(sys.argv[1:]))"
"""Starts this file as a module: a script would be compiled anew each time, in 5 ms."""
LIBC = _ctypes.dlopen(None, 2)  # pyright: ignore[reportArgumentType] - the program itself, as in dlopen(3)
FILE_TYPE, FOLDER, PLAIN_FILE = 0o170000, 0o040000, 0o100000


class LaunchSpec:
    """What is asked for on the command line."""

    def __init__(self, words: list[str]) -> None:
        end = words.index("--")
        self._pairs = [word.partition("=")[::2] for word in words[:end]]
        self.command = words[end + 1 :]

    def all(self, key: str) -> list[str]:
        """Return all values of a word such as `read`."""
        return [value for name, value in self._pairs if name == key]


class Stopped(Exception):  # noqa: N818 - no error
    """A signal asked this process to end."""


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library; bytes are handed over by their address."""
    result: int = _ctypes.call_function(_ctypes.dlsym(LIBC, name), arguments)
    return result


def packed(size: int, *numbers: int) -> bytes:
    """Return numbers of so many bytes each as they are in memory, on the machines whose calls are known."""
    return b"".join([number.to_bytes(size, "little") for number in numbers])


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 for none."""
    return max(0, call("syscall", CREATE_RULESET, None, 0, ASK_VERSION))


def main(words: list[str]) -> int:
    """Become the command; supervised, end with its exit code once nothing of it is left."""
    order = LaunchSpec(words[1:])
    if words[0] == "supervise":
        # At once: nothing is left to be written or closed, and Python takes 2 ms to put itself away.
        posix._exit(supervise(order))  # noqa: SLF001 - public as `os._exit`
    try:
        limit(order.all("limit"))
        _ask(SET_NO_NEW_PRIVILEGES, 1)
        lock_files(order, 0, DEVICE_FILES)
        as_started_by_a_shell()
        wait(order)
        posix.execv(order.command[0], order.command)
    except OSError as error:
        posix.write(2, f"the sandbox could not be made: {error}\n".encode())
    return FAILED


def as_started_by_a_shell() -> None:
    """Give signals their usual meaning back: Python ignores some of them, and what it starts would too."""
    for number in (PIPE, FILE_SIZE, HANGUP, INTERRUPT, TERMINATE):
        call("signal", number, None)


def wait(order: LaunchSpec) -> int:
    """Wait until the engine lets the command begin; return how many tasks the kernel counts with the command's.

    Raises:
        OSError: It never will.
    """
    tasks = 0
    for descriptor in map(int, order.all("wait")):
        said = posix.read(descriptor, GATE_BYTES)
        if said[:1] != b"g":
            raise OSError("it was called off")
        posix.close(descriptor)
        tasks += int(said[1:])
    return tasks


def limit(limits: list[str], tasks: int = 0) -> None:
    """Set limits of this process and all it starts, by their names in `resource`.

    Args:
        limits: Names and values.
        tasks: How many tasks the kernel counts with the command's: all of the user's, without a namespace of users.
    """
    for name, _, value in (one.partition(":") for one in limits):
        number = getattr(resource, name)
        _, most = resource.getrlimit(number)
        wanted = int(value) + (tasks if name == OF_TASKS else 0)
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(number, (wanted, wanted))


def lock_files(order: LaunchSpec, tcp: int, without: int) -> None:
    """Give up every right to files but those asked for.

    Raises:
        OSError: The kernel refuses.
    """
    version = landlock_version()
    rights = RIGHTS.get(version, RIGHTS_SINCE_5)
    size = 24 if version >= SCOPES_SINCE else 16 if version >= TCP_SINCE else 8
    ruleset = _checked(call("syscall", CREATE_RULESET, packed(8, rights, tcp, SCOPES), size, 0), "Landlock")
    granted = {
        "list": LIST,
        "read": READING,
        "device": READ_AND_WRITE | LIST | ORDERS_TO_DEVICES,
        "write": ~without,
    }
    for key, right in granted.items():
        for path in order.all(key):
            _allow(ruleset, path, rights & right, posix.O_NOFOLLOW if key == "write" else 0)
    _allow_output(ruleset)
    _checked(call("syscall", RESTRICT_SELF, ruleset, 0), "Landlock")
    posix.close(ruleset)


def _allow_output(ruleset: int) -> None:
    """Let a command open its own output again, as `tee /dev/stderr` does."""
    status = posix.fstat(1)
    if status.st_mode & FILE_TYPE == PLAIN_FILE:
        rule = packed(8, READ_AND_WRITE | 1 << 14) + packed(4, 1)
        _checked(call("syscall", ADD_RULE, ruleset, BENEATH, rule, 0), "Landlock, output")


def _allow(ruleset: int, path: str, rights: int, flags: int) -> None:
    try:
        descriptor = posix.open(path, posix.O_PATH | posix.O_CLOEXEC | flags)
    except FileNotFoundError:
        return
    is_folder = posix.fstat(descriptor).st_mode & FILE_TYPE == FOLDER
    rule = packed(8, rights if is_folder else rights & OF_FILES) + packed(4, descriptor)
    _checked(call("syscall", ADD_RULE, ruleset, BENEATH, rule, 0), f"Landlock, {path}")
    posix.close(descriptor)


def supervise(order: LaunchSpec) -> int:
    """Run the command and wait until nothing of it is left."""
    # Inside bubblewrap nobody supervises; and `signal` itself takes 5 ms.
    import _signal  # noqa: PLC0415  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
    import _socket  # noqa: PLC0415

    engine = posix.getppid()
    _ask(SET_SUBREAPER, 1)
    _ask(SET_DEATH_SIGNAL, TERMINATE)
    asked = (TERMINATE, INTERRUPT, HANGUP)
    for number in asked:
        _signal.signal(number, _stop)  # pyright: ignore[reportUnknownMemberType]
    if posix.getppid() != engine:
        return FAILED
    waiting = [int(descriptor) for descriptor in order.all("wait")]
    here, there = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    supervisor = posix.getpid()
    try:  # from here on whatever happens, nothing is left behind
        child = posix.fork()
        if child == 0:
            _become(order, there, supervisor)
        there.close()
        for descriptor in waiting:
            posix.close(descriptor)
        return _wait_for(child, here, tuple(order.all("write")))
    except Stopped:
        return SIGNALLED + TERMINATE
    finally:
        for number in asked:
            call("signal", number, IGNORE)
        _end_all()


def _stop(_number: int, _frame: object) -> None:
    raise Stopped


def _become(order: LaunchSpec, channel: "socket", supervisor: int) -> None:
    """Give all rights up and become the command. Runs in the child, and never returns."""
    try:
        posix.setsid()
        _ask(SET_DEATH_SIGNAL, KILL)
        if posix.getppid() != supervisor:
            return
        posix.chdir(order.all("folder")[0])
        limits = order.all("limit")
        limit([one for one in limits if not one.startswith(OF_TASKS)])
        _ask(SET_NO_NEW_PRIVILEGES, 1)
        lock_files(order, TCP, SPECIAL_FILES)
        _drop_capabilities()
        _filter(bytes.fromhex(order.all("filter")[0]), channel)
        as_started_by_a_shell()
        limit([one for one in limits if one.startswith(OF_TASKS)], wait(order))
        posix.execv(order.command[0], order.command)
    except OSError as error:
        posix.write(2, f"the sandbox could not be made: {error}\n".encode())
    finally:
        posix._exit(FAILED)  # noqa: SLF001 - public as `os._exit`


def _drop_capabilities() -> None:
    """Give up what root may do; an ordinary user has nothing to give up, and the first calls fail for it."""
    for capability in range(CAPABILITIES):
        call("prctl", DROP_FROM_BOUND, capability, 0, 0, 0)
    call("prctl", SET_SECURE_BITS, SECURE_BITS, 0, 0, 0)
    call("prctl", AMBIENT, AMBIENT_CLEAR, 0, 0, 0)
    header = packed(4, CAPABILITY_VERSION, 0)
    _checked(call("syscall", SET_CAPABILITIES[posix.uname().machine], header, bytes(24)), "capabilities")


def _filter(program: bytes, channel: "socket") -> None:
    """Load the filter, and hand the supervisor the file on which it is asked."""
    from array import array  # noqa: PLC0415 - has the address of its content, as the kernel wants it

    lines = array("B", program)
    head = packed(8, len(program) // 8, lines.buffer_info()[0])
    listener = _checked(call("syscall", SECCOMP[posix.uname().machine], SET_FILTER, NEW_LISTENER, head), "seccomp")
    channel.sendmsg([b"x"], [(1, 1, packed(4, listener))])  # SOL_SOCKET, SCM_RIGHTS


def _wait_for(child: int, channel: "socket", writable: tuple[str, ...]) -> int:
    """Serve the command and take in whatever ends, until the command itself does."""
    import select  # noqa: PLC0415 - inside bubblewrap nobody supervises

    serve: type[file_metadata.Call] = __import__("file_metadata").Call
    waiting = select.poll()
    ended = posix.pidfd_open(child)
    _, passed, _, _ = channel.recvmsg(1, 24)
    waiting.register(ended, select.POLLIN)
    listeners = [int.from_bytes(data[:4], "little") for _, _, data in passed]
    for listener in listeners:
        waiting.register(listener, select.POLLIN)
    while True:
        found = dict(waiting.poll(CHECK_MS))
        for listener in listeners:
            if found.get(listener, 0) & select.POLLIN:
                serve(listener).answer(writable)
            elif listener in found:  # nobody is left who could ask
                waiting.unregister(listener)
                listeners = []
        status = _taken_in(child)
        if status is not None:
            code = posix.waitstatus_to_exitcode(status)
            return SIGNALLED - code if code < 0 else code


def _taken_in(child: int) -> int | None:
    """Take in all that has ended; return the status of the command if it is among them."""
    found = None
    try:
        while (ended := posix.waitpid(-1, posix.WNOHANG))[0]:
            found = ended[1] if ended[0] == child else found
    except ChildProcessError:
        pass
    return found


def _end_all() -> None:
    """Stop every process below us, so that none can start another, then end them and take them in."""
    stopped: set[int] = set()
    while _has_children() and (found := _below(posix.getpid()) - stopped):
        _send(found, STOP)
        stopped |= found
    _send(stopped, KILL)
    try:
        while True:
            posix.wait()
            _send(_below(posix.getpid()), KILL)
    except ChildProcessError:
        return


def _has_children() -> bool:
    """Return whether any process is left: what the command started comes to us when its parent ends."""
    try:
        posix.waitpid(-1, posix.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _send(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            posix.kill(pid, number)
        except ProcessLookupError:
            continue


def _below(top: int) -> set[int]:
    """Return all living descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in posix.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if name.isdecimal() and state not in b"ZX":
            children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    waiting = [top]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(new)
        waiting += new
    return found


def _ask(option: int, value: int) -> None:
    _checked(call("prctl", option, value, 0, 0, 0), "prctl")


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(EPERM, f"{what}: the kernel refuses")
    return result
