"""Servers that are no model servers, as plain bytes on a loopback port, with what an error about each must say."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest


class WireModel(NamedTuple):
    """What answers in place of a model server."""

    sends: bytes
    says: str
    """A pattern that the error must match."""
    is_first_to_speak: bool = False
    """Whether it sends before it has read anything."""


EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CLOSING = EVENTS + b"connection: close\r\n"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n"

FOREIGN = {
    "SSH": WireModel(
        b"SSH-2.0-OpenSSH_9.6\r\n", r"does not speak HTTP \(it sent 'SSH-2.0-OpenSSH_9.6'\)", is_first_to_speak=True
    ),
    "SMTP": WireModel(
        b"220 mail.example ESMTP\r\n", r"does not speak HTTP \(it sent '220 mail", is_first_to_speak=True
    ),
    "Redis": WireModel(b"-ERR unknown command 'POST'\r\n", r"does not speak HTTP \(it sent .-ERR unknown"),
    "HTTP 0.9": WireModel(b"<html>Welcome</html>", "does not speak HTTP"),
    "bytes": WireModel(bytes(range(256)) * 8, "does not speak HTTP"),
    "a TLS alert": WireModel(b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS, not plain HTTP"),
    "nothing": WireModel(b"", "closed the connection without an answer"),
    "a long header": WireModel(
        b"HTTP/1.1 200 OK\r\nx-big: " + b"x" * 100_000 + b"\r\n\r\n", "broken HTTP answer .*8190"
    ),
    "many headers": WireModel(
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(10_000)) + b"\r\n", "headers"
    ),
    "a broken chunk": WireModel(
        EVENTS + b"transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n", "broken HTTP answer .*zz"
    ),
    "a web page": WireModel(PAGE + b"<title>Router login</title><p>Hi", r"a web page \('Router login'\)"),
    "no body": WireModel(EVENTS + b"content-length: 0\r\n\r\n", r"an empty answer \(status 200\)"),
    "no content": WireModel(b"HTTP/1.1 204 No Content\r\n\r\n", r"an empty answer \(status 204\)"),
    "not modified": WireModel(b"HTTP/1.1 304 Not Modified\r\n\r\n", "status 304"),
    "plain text": WireModel(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nIt works!", "'It works!'"
    ),
    "other JSON": WireModel(
        b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"status": "up"}', "status.*up"
    ),
    "no gzip": WireModel(CLOSING + b"content-encoding: gzip\r\n\r\nthis is not gzip", "cannot be decompressed"),
}


class Listening:
    """A port of this machine on which the same bytes answer every connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0


@contextmanager
def answering(foreign: WireModel, tls: ssl.SSLContext | None = None) -> Generator[Listening]:
    """Answer every connection with the same bytes, and close it."""
    socket_ = socket.create_server(("127.0.0.1", 0))
    listening = Listening(socket_.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                connection, _ = socket_.accept()
            except OSError:
                return
            listening.connections += 1
            with suppress(OSError):
                _answer(tls.wrap_socket(connection, server_side=True) if tls else connection, foreign)
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening
    finally:
        # `close` alone does not wake a thread that waits in `accept`.
        with suppress(OSError):
            socket_.shutdown(socket.SHUT_RDWR)
        socket_.close()
        thread.join(5)


def _answer(connection: socket.socket, foreign: WireModel) -> None:
    with connection:
        if not foreign.is_first_to_speak:
            connection.recv(65_536)
        connection.sendall(foreign.sends)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass


def tls_context(folder: Path) -> ssl.SSLContext:
    """Make a server's context with a certificate that nobody trusts; skips the test where there is no openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    ask = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([openssl, *ask.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
