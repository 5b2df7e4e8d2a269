"""What a command uses is counted as the kernel counts it."""

import os
import subprocess
import threading

import pytest

from explorer.sandbox.resource_monitor import tasks_of

NOBODY_IS = 0x7FFF0000


def test_tasks_of_a_user_are_counted_with_their_threads() -> None:
    """As for the limit on processes: each thread is one."""
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert tasks_of(os.getuid()) > 5
    over.set()
    for thread in threads:
        thread.join()
    assert tasks_of(NOBODY_IS + os.getpid() % 1_000) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of another user")
def test_a_process_that_hides_what_it_holds_is_counted() -> None:
    """The engine does, and its files in /proc are root's then."""
    user = NOBODY_IS + os.getpid() % 1_000
    hide = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print('hidden', flush=True); open(0).read()"
    words = ["/usr/bin/python3", "-I", "-S", "-c", hide]
    with subprocess.Popen(words, user=user, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"hidden\n"
        assert os.stat(f"/proc/{child.pid}/environ").st_uid == 0  # noqa: PTH116
        assert tasks_of(user) == 1
