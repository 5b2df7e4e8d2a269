"""The process that parses documents of one kind (`python launch.py KIND MEMORY_BYTES CPU_S`); a document may crash it.

It loads its parsers, then takes away from itself everything but its pipes (`confine.py`), and only then reads. It has
no keys, and limits of memory and of CPU time for each document. It ends when the engine closes the process's stdin,
or, if the engine has ended, after the current document.
"""

import contextlib
import logging
import os
from typing import BinaryIO

from explorer.documents.parsing.confine import confine
from explorer.documents.parsing.document import QUESTION, ParseReply, answer_bytes, question_of
from explorer.documents.parsing.libraries import load
from explorer.documents.parsing.reading import read_once
from explorer.schema.errors import ToolError

LEAST_FREE = 3
"""The first descriptor after stdin, stdout and stderr."""
MOST_DESCRIPTORS = 4_096


def main(kind: str, memory_bytes: int, cpu_s: int) -> None:
    """Answer requests until the engine closes stdin."""
    logging.disable(logging.CRITICAL)  # the document's flags say what a parser could not read
    limit_memory(memory_bytes)
    limit_time(cpu_s)
    load(kind)
    questions, answers = open_pipes()
    _say(answers, ParseReply(confinement=confine()))
    while head := questions.read(QUESTION.size):
        limit_time(cpu_s)
        head_bytes, body_bytes = QUESTION.unpack(head)
        question = question_of(questions.read(head_bytes))
        body = questions.read(body_bytes)
        try:
            document = read_once(kind, body, url=question.url, content_type=question.content_type)
        except ToolError as error:
            _say(answers, ParseReply(problem=error.message))
        else:
            _say(answers, ParseReply(document=document))
    os._exit(0)  # nothing is left to tidy, and large libraries are slow to leave


def open_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the two pipes to the engine; they, stderr and nothing else stay open."""
    os.closerange(LEAST_FREE, MOST_DESCRIPTORS)
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # a parser that reads or prints must not touch what is said here
        os.dup2(nothing, stream)
    os.close(nothing)
    return os.fdopen(questions, "rb"), os.fdopen(answers, "wb")


def _say(answers: BinaryIO, answer: ParseReply) -> None:
    with contextlib.suppress(BrokenPipeError):  # the engine is gone; the next reading sees it
        answers.write(answer_bytes(answer))
        answers.flush()


def limit_memory(memory_bytes: int) -> None:
    """Limit the address space of this process, and forbid it to write files."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # systems without such limits; time is limited anyway
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_time(cpu_s: int) -> None:
    """Limit the CPU seconds for the next document, not counting past ones; the system ends a process that uses more."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not everywhere

        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_s + 1, hard))
