"""What confines the processes that parse: the filter for both machines, and the walls on hosts that lack some."""

import gzip
import json
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from documents.parsing.documents import pdf_of, text_bomb
from explorer.documents.parsing.confine import CONDITIONAL, MACHINES, program
from explorer.documents.parsing.document import ConfinementReport
from explorer.documents.parsing.parser import Parser
from explorer.documents.parsing.reading import read_document
from explorer.kernel.bpf import ARCHITECTURES
from explorer.schema.errors import ToolError

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT.parent / "shared" / "data" / "pages" / "html"
PROCESS = 4_321
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
OF_OTHERS = {
    "x86_64": {
        "open": 2,
        "stat": 4,
        "ioctl": 16,
        "socket": 41,
        "sendmsg": 46,
        "clone": 56,
        "execve": 59,
        "kill": 62,
        "fcntl": 72,
        "ptrace": 101,
        "setuid": 105,
        "prctl": 157,
        "openat": 257,
        "memfd_create": 319,
        "pkey_mprotect": 329,
        "io_uring_setup": 425,
        "clone3": 435,
        "x32 read": 0x40000000,
    },
    "aarch64": {
        "fcntl": 25,
        "ioctl": 29,
        "openat": 56,
        "ptrace": 117,
        "kill": 129,
        "setuid": 146,
        "prctl": 167,
        "socket": 198,
        "sendmsg": 211,
        "clone": 220,
        "execve": 221,
        "memfd_create": 279,
        "pkey_mprotect": 288,
        "io_uring_setup": 425,
        "clone3": 435,
    },
}
HOST = """
import ctypes, errno, json, os, struct, sys
from dataclasses import asdict
from explorer.documents.parsing import confine
from explorer.kernel import bpf

def refuse(number):
    refused = bpf.if_call(number, [bpf.line(bpf.RETURN, bpf.REFUSE | errno.ENOSYS)])
    code = b"".join([bpf.line(bpf.LOAD, bpf.NUMBER), *refused, bpf.line(bpf.RETURN, bpf.ALLOW)])
    lines = ctypes.create_string_buffer(code, len(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, struct.pack("HP", len(code) // 8, ctypes.addressof(lines)), 0, 0) == 0

class Old:
    version = int(sys.argv[1][-1]) if "ABI" in sys.argv[1] else 0
    libc = ctypes.CDLL(None, use_errno=True)
    def __getattr__(self, name):
        return getattr(self.libc, name)
    def syscall(self, number, *rest):
        is_question = number == confine.CREATE_RULESET and rest[0] is None
        return self.version if is_question else self.libc.syscall(number, *rest)

lacks = sys.argv[1]
if "seccomp" in lacks:
    refuse(317)
if "Landlock" in lacks:
    refuse(444)
if "root" in lacks:
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
if "ABI" in lacks:
    ctypes.CDLL = lambda *_, **__: Old()
print(json.dumps(asdict(confine.confine())))
"""


def verdict(code: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What a filter answers to a call, by the rules of classic BPF."""
    data = struct.pack("IIQ6Q", number, architecture, 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    lines = list(struct.iter_unpack("HBBI", code))
    place = loaded = 0
    while True:
        operation, if_true, if_false, value = lines[place]
        place += 1
        match operation:
            case 0x20:
                (loaded,) = struct.unpack_from("I", data, value)
            case 0x15:
                place += if_true if loaded == value else if_false
            case 0x45:
                place += if_true if loaded & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(operation)


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_the_filter_allows_what_parsing_takes_and_nothing_else(machine: str) -> None:
    """On each machine the calls of the list are allowed, and of all other numbers none."""
    architecture, numbers = ARCHITECTURES[machine], MACHINES[machine]
    code = program(machine, PROCESS)
    always = {numbers[name] for name in set(numbers) - CONDITIONAL}
    allowed = {number for number in range(600) if verdict(code, architecture, number) == ALLOW}
    # Without arguments: memory that is not executable, the limit of CPU time of one's own, and no signal.
    assert allowed == always | {numbers["mmap"], numbers["mprotect"], numbers["prlimit64"]}
    assert {
        name for name, number in OF_OTHERS[machine].items() if verdict(code, architecture, number) != REFUSE
    } == set()
    assert verdict(code, 0x40000003, 0) == KILL, "calls of another architecture have other numbers"


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_the_filter_looks_at_arguments(machine: str) -> None:
    """No memory is made executable, no limit but that of CPU time is set, no other process is touched."""
    architecture, numbers = ARCHITECTURES[machine], MACHINES[machine]
    code = program(machine, PROCESS)

    def answer(name: str, *arguments: int) -> int:
        return verdict(code, architecture, numbers[name], arguments)

    for call in ("mmap", "mprotect"):
        assert [answer(call, 0, 4_096, rights) for rights in (3, 4, 5, 7)] == [ALLOW, REFUSE, REFUSE, REFUSE]
    assert [answer("prlimit64", *of) for of in ((0, 0), (0, 9), (PROCESS, 0))] == [ALLOW, REFUSE, REFUSE]
    assert [answer("tgkill", *of) for of in ((PROCESS, 7, 6), (1, 1, 6))] == [ALLOW, REFUSE]


async def test_a_worker_is_confined_here() -> None:
    """Where the system has seccomp, a real worker found every attempt refused."""
    if sys.platform != "linux" or os.uname().machine not in MACHINES:
        pytest.skip("this machine has no seccomp that is known here")
    async with Parser() as parser:
        found = await parser.confinement()
        assert found.holds, found
        assert (await parser.parse("json", b"[]")).text == "[]"


def on_a_host(lacks: str) -> ConfinementReport:
    """What a process that confines itself finds where something is missing."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("the stand-in hosts are for Linux on x86_64")
    done = subprocess.run([sys.executable, "-c", HOST, lacks], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return ConfinementReport(found["has_seccomp"], found["landlock"], found["why"], tuple(found["open"]))


@pytest.mark.slow
def test_without_landlock_the_filter_holds_alone() -> None:
    """An old kernel or a container without Landlock: everything is refused all the same."""
    found = on_a_host("Landlock")
    assert (found.holds, found.landlock) == (True, 0)


@pytest.mark.slow
def test_without_seccomp_it_is_said() -> None:
    """Then limits and Landlock hold files and sockets, and the report names what does not hold."""
    found = on_a_host("seccomp")
    assert not found.holds
    assert found.why == "this system refuses seccomp (Function not implemented)"
    assert not {"open a file", "write to /proc", "connect", "start a process", "become root"} & set(found.open)
    assert "make memory executable" in found.open


def test_with_neither_limits_are_left() -> None:
    """No descriptor and no process can be added by limits alone."""
    found = on_a_host("seccomp Landlock")
    assert (found.holds, found.landlock) == (False, 0)
    assert not {"open a file", "connect", "start a process"} & set(found.open)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 3, 4, 5, 6])
def test_old_versions_of_landlock(version: int) -> None:
    """Each is asked for what it knows, and no more: the kernel would refuse the rest."""
    if on_a_host("").landlock < version:
        pytest.skip("this kernel's Landlock is older")
    assert (found := on_a_host(f"ABI {version}")).holds
    assert found.landlock == version


@pytest.mark.slow
def test_an_ordinary_user_is_confined_too() -> None:
    """Without root nothing is missing; as root the test becomes nobody first."""
    found = on_a_host("root" if os.geteuid() == 0 else "")
    assert found.holds, found


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_confined_parser_reads_as_an_unconfined_one() -> None:
    """Every real page has the same text and metadata in a worker: nothing is loaded after the walls are up."""
    if not PAGES.exists():
        pytest.skip(f"real pages are not here: {PAGES}")
    bodies = [("html", gzip.decompress(path.read_bytes())) for path in sorted(PAGES.iterdir())]
    async with Parser() as parser:
        for kind, body in bodies:
            assert await parser.parse(kind, body, url="https://a.example/x") == read_document(
                kind, body, url="https://a.example/x"
            )


@pytest.mark.slow
async def test_rare_documents_are_read_as_by_an_unconfined_parser() -> None:
    """Encodings, PDFs with and without text, and dates of all kinds load their tables before the walls are up."""
    documents: list[tuple[str, bytes, str]] = []
    for name in (
        "gb18030",
        "big5",
        "shift_jis",
        "euc-jp",
        "iso-2022-jp",
        "euc-kr",
        "koi8-r",
        "macintosh",
        "ibm866",
        "tis-620",
    ):
        page = "<html><body><p>äß слово 日本 한국 and words</p></body></html>".encode(name, "replace")
        documents.append(("html", page, f"text/html; charset={name}"))
        documents.append(
            ("feed", _feed("Mon, 01 Jan 2024 10:00:00 GMT").encode(name, "replace"), f"text/xml; charset={name}")
        )
    documents += [("feed", _feed(date).encode(), "") for date in DATES]
    documents += [
        ("pdf", body, "") for body in (pdf_of(["One", "Two"]), pdf_of([""]), text_bomb(1), b"%PDF-1.4 rubbish")
    ]
    async with Parser() as parser:
        for kind, body, label in documents:
            try:
                expected = read_document(kind, body, content_type=label)
            except ToolError as error:
                with pytest.raises(ToolError, match=error.message):
                    await parser.parse(kind, body, content_type=label)
            else:
                assert await parser.parse(kind, body, content_type=label) == expected, (kind, label)


DATES = (
    "2024-01-02T10:00:00+09:00",
    "20240102",
    "2024년 3월",
    "Δευ, 12 Ιουλ 2004 11:17:28 EST",
    "2004. 07. 05",
    "no date",
)


def _feed(date: str) -> str:
    content = "<content type='xhtml'><div>hey<svg/></div></content>"
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title type='html'>x &lt;b></title>"
        f"<entry><title>ä 日 y</title><updated>{date}</updated>{content}</entry></feed>"
    )
