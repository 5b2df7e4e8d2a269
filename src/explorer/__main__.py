"""The entry point: `explorer` and `python -m explorer`."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

from explorer.cli.help_text import quick_answer


def main() -> int:
    """Run the command line and return its exit code.

    Help and version are answered before the parser is imported: they are typed while thinking, so they are instant.
    """
    _open_standard_streams()
    tokens = sys.argv[1:]
    answer = quick_answer(tokens)
    if answer is not None:
        return _print(answer)
    # Before the imports: hardly anything of what they make is garbage, and looking for it takes a tenth of their time.
    from explorer.run.collector import COLLECTOR, importing  # noqa: PLC0415 - help must not pay for it

    gc.set_threshold(*COLLECTOR)
    with importing(), _ended_by_interrupts():
        from explorer.cli.app import run_tokens  # noqa: PLC0415 - help must not pay for the parser
        from explorer.cli.secrecy import guard_streams  # noqa: PLC0415 - the same

    guard_streams()

    code = run_tokens(tokens)
    # All is said and on disk: a late Ctrl-C must not abort the interpreter in the middle of its own shutdown.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


@contextmanager
def _ended_by_interrupts() -> Generator[None]:
    """Let Ctrl-C end the process as its default is, for imports: nothing is at work yet, and a traceback is no help."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)


def _print(answer: str) -> int:
    """Write help or a version; return the exit code."""
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except OSError:
        from explorer.cli.screens.output import emit, print_error  # noqa: PLC0415 - help must not pay
        from explorer.schema.errors import StorageError  # noqa: PLC0415 - the same

        try:
            emit(answer)
        except StorageError as error:
            print_error(error, verbose=0)
            return error.exit_code
    return 0


def _open_standard_streams() -> None:
    """Connect standard streams that the caller closed to the null device.

    Otherwise the next file or socket gets the number of a standard stream: what a library writes to stderr would end in
    the journal, and the event loop aborts when it closes it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            os.set_inheritable(opened, True)  # noqa: FBT003 - the parameter has no name
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
