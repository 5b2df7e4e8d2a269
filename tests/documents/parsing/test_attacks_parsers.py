"""Bombs for parsers, at full size: the engine stays as it is, and the next page is read (NW-10).

Each has its control: the same bomb, read by the library alone and without limits, takes what no engine can give.
"""

import asyncio
import math
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass

import pytest

from documents.parsing.documents import laughs, pdf_of, pdf_of_many, pdf_with, quadratic, squeezed, text_bomb
from explorer.documents.parsing.parser import Parser
from explorer.schema.errors import ToolError

PAGE = b"<html><title>Note</title><body><p>Only six words are here.</p></body></html>"
HANGS_S = 150.0
"""For one bomb: a worker has 30 s, and a busy machine takes its time to end it and to start the next one."""
TOO_LARGE_MB = 700
TOO_LONG_S = 12.0

PEAK = (
    "\nimport re\nfrom pathlib import Path\n"
    "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) // 1024)"
)
FEED_ALONE = "import sys\nfrom xml.etree import ElementTree\nElementTree.fromstring(sys.stdin.buffer.read())" + PEAK
PDF_ALONE = (
    "import sys, pypdfium2\npdf = pypdfium2.PdfDocument(sys.stdin.buffer.read())\n"
    "pdf[0].get_textpage().get_text_range()" + PEAK
)
HTML_ALONE = (
    "import sys\nfrom resiliparse.extract.html2text import extract_plain_text\n"
    "extract_plain_text(sys.stdin.read(), main_content=True)" + PEAK
)


@dataclass(frozen=True)
class Bomb:
    """A document made to harm."""

    kind: str
    body: bytes


def bombs() -> dict[str, Bomb]:
    """All of them, by name."""
    gigabyte = squeezed(b" " * 1_000_000, 1_000)
    twice = zlib.compress(zlib.compress(gigabyte, 9), 9)
    return {
        "divs": Bomb("html", b"<html><body>" + b"<div>" * 2_000_000 + b"hello " * 100),
        "unknown elements": Bomb("html", b"<html><body>" + b"<p><custom-x>" * 700_000 + b"hello " * 100),
        "tables": Bomb("html", b"<html><body>" + b"<table><tr><td>" * 650_000 + b"hello " * 100),
        "attributes": Bomb("html", b"<html><body><p " + b"a=b " * 2_500_000 + b">hello"),
        "angles": Bomb("html", b"<" * 10_000_000),
        "comments": Bomb("html", b"<!--" * 2_500_000),
        "a page again and again": Bomb("pdf", pdf_of_many(500_000)),
        "a count that lies": Bomb("pdf", pdf_of(["x"]).replace(b"/Count 1/", b"/Count 2000000000/")),
        "a stream": Bomb("pdf", pdf_with(gigabyte)),
        "a stream in streams": Bomb("pdf", pdf_with(twice, b"[/FlateDecode/FlateDecode/FlateDecode]")),
        "text": Bomb("pdf", text_bomb(300)),
        "laughs": Bomb("feed", laughs()),
        "one long laugh": Bomb("feed", quadratic(5_000_000, 90)),
        "brackets": Bomb("json", b"[" * 5_000_000),
        "digits": Bomb("json", b"1" * 1_900_000),
    }


@dataclass
class Heart:
    """Beats as long as the engine's loop runs."""

    beats: int = 0
    longest_cpu_s: float = 0.0
    """Processor time of the loop's thread between two beats; it does not count while other programs are served."""

    async def beat(self) -> None:
        """Beat until it is cancelled."""
        latest = time.thread_time()
        while True:
            await asyncio.sleep(0.05)
            self.beats += 1
            self.longest_cpu_s, latest = max(self.longest_cpu_s, time.thread_time() - latest), time.thread_time()


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_bombs() -> None:
    """Each bomb is read within bounds or refused with words, meanwhile the engine runs, and then a page is read."""
    heart = Heart()
    async with Parser() as parser, asyncio.TaskGroup() as group:
        beating = group.create_task(heart.beat())
        for name, bomb in bombs().items():
            began, beats = time.monotonic(), heart.beats
            try:
                found = await parser.parse(bomb.kind, bomb.body, url="https://bomb.example/x")
            except ToolError as error:
                assert "could not be read" in error.message, name  # noqa: PT017 - either is honest
            else:
                assert len(found.text) <= 5_000_000, name
            took_s = time.monotonic() - began
            assert took_s < HANGS_S, name
            # Who waits for a parser without giving way lets nothing beat.
            assert heart.beats > beats or took_s < 1, name
            assert (await parser.parse("html", PAGE)).title == "Note", name
        beating.cancel()
    assert heart.longest_cpu_s < 2.0


def alone(program: str, body: bytes) -> float:
    """Megabytes that a library took for a document, without any limits; infinite when it did not end."""
    command = [sys.executable, "-c", program]
    try:
        return int(subprocess.run(command, input=body, capture_output=True, timeout=TOO_LONG_S, check=True).stdout)
    except subprocess.TimeoutExpired:
        return math.inf


@pytest.mark.slow
def test_bombs_go_off_where_nothing_holds_them() -> None:
    """The control: nested HTML takes forever, text in a PDF and a feed's entity take the memory of a machine."""
    assert alone(HTML_ALONE, b"<div>" * 60_000 + b"hello") == math.inf
    assert alone(PDF_ALONE, text_bomb(60)) > TOO_LARGE_MB
    assert alone(FEED_ALONE, quadratic(9_000_000, 90)) > TOO_LARGE_MB
