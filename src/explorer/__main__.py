"""The entry point: `explorer` and `python -m explorer`."""

import gc
import signal
import sys

from explorer.cli.help_text import quick_answer


def main() -> int:
    """Run the command line and return its exit code.

    Help and version are answered before the parser is imported: they are typed while thinking, so they are instant.
    """
    tokens = sys.argv[1:]
    answer = quick_answer(tokens)
    if answer is not None:
        sys.stdout.write(answer)
        return 0
    # Before the imports: hardly anything of what they make is garbage, and looking for it takes a tenth of their time.
    from explorer.run.collector import COLLECTOR, importing  # noqa: PLC0415 - help must not pay for it

    gc.set_threshold(*COLLECTOR)
    with importing():
        from explorer.cli.app import run_tokens  # noqa: PLC0415 - help must not pay for the parser
        from explorer.cli.secrecy import guard_streams  # noqa: PLC0415 - the same

    guard_streams()

    code = run_tokens(tokens)
    # All is said and on disk: a late Ctrl-C must not abort the interpreter in the middle of its own shutdown.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
