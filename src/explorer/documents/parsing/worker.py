"""The process that parses documents (`python -m explorer.documents.parsing.worker`); a document may crash it.

The process has no keys, opens no files or connections, and has limits of memory and of CPU time for each document.
It ends when the engine closes the process's stdin, or, if the engine has ended, after the current document.
"""

import contextlib
import logging
import os
import sys
from typing import BinaryIO

from explorer.documents.parsing.document import QUESTION, READY, ParseReply, answer_bytes, question_of
from explorer.documents.parsing.reading import read_document
from explorer.schema.errors import ToolError

MAX_DESCRIPTORS = 64


def main(memory_bytes: int, cpu_s: int) -> None:
    """Answer requests until the engine closes stdin."""
    logging.disable(logging.CRITICAL)  # the document's flags say what a parser could not read
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # a parser that reads or prints must not touch what is said here
        os.dup2(nothing, stream)
    _limit_memory(memory_bytes)
    _say(answers, READY)
    while head := questions.read(QUESTION.size):
        _limit_time(cpu_s)
        head_bytes, body_bytes = QUESTION.unpack(head)
        question = question_of(questions.read(head_bytes))
        body = questions.read(body_bytes)
        try:
            document = read_document(question.kind, body, url=question.url, content_type=question.content_type)
        except ToolError as error:
            _say(answers, ParseReply(problem=error.message, peak_bytes=_peak_bytes()))
        else:
            _say(answers, ParseReply(document=document, peak_bytes=_peak_bytes()))
    os._exit(0)  # nothing is left to tidy, and large libraries are slow to leave


def _say(answers: BinaryIO, answer: ParseReply) -> None:
    with contextlib.suppress(BrokenPipeError):  # the engine is gone; the next reading sees it
        answers.write(answer_bytes(answer))
        answers.flush()


def _limit_memory(memory_bytes: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # systems without such limits; time is limited anyway
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_DESCRIPTORS, MAX_DESCRIPTORS))


def _limit_time(cpu_s: int) -> None:
    """Limit the CPU seconds for the next document, not counting past ones; the system ends a process that uses more."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not everywhere

        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_s + 1, hard))


def _peak_bytes() -> int:
    """Return the peak memory of this process in bytes; 0 where the system does not report it.

    `getrusage` is not used: on Linux, its value in a new process begins with the peak of the parent process.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - nothing more is imported here
            lines = [line for line in status if line.startswith("VmHWM:")]
        return int(lines[0].split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
