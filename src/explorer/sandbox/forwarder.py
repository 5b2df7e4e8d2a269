"""Inside a sandbox: passes what comes to a port of its own empty network on to the proxy's socket file.

A program of its own, standard library only. It returns once it listens, and goes on in the background: usage is
`python -I -S forwarder.py PORT SOCKET`. Programs know proxies by address, not by socket file; that is all it is for.
"""

import os
import socket
import sys
import threading
from contextlib import suppress

CHUNK_BYTES = 65_536


def main(port: int, path: str) -> None:
    """Listen, then go into the background."""
    server = socket.create_server(("127.0.0.1", port))
    if os.fork():
        os._exit(0)
    # Whoever waits for the command's output must not wait for this process too.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    while True:
        client, _ = server.accept()
        threading.Thread(target=_join, args=(client, path), daemon=True).start()


def _join(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as way_out, suppress(OSError):
        way_out.connect(path)
        back = threading.Thread(target=_pump, args=(way_out, client), daemon=True)
        back.start()
        _pump(client, way_out)
        back.join()


def _pump(here: socket.socket, there: socket.socket) -> None:
    with suppress(OSError):
        while chunk := here.recv(CHUNK_BYTES):
            there.sendall(chunk)
        there.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
