"""What tests of your own tools, roles and programs need: a model that says what a script says.

In the same process, as a client:

    from explorer.testing import ScriptedClient, says

    client = ScriptedClient({"orchestrator": [says("The answer is 42.")]})

For another process, such as the command line, as a server on this machine:

    with ScriptedServer([says("The answer is 42.")]) as server:
        subprocess.run(["explorer", "What is the answer?"], env={"OPENAI_BASE_URL": server.url, ...})
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from explorer.llm.scripted import Script, ScriptedClient, ScriptError, says
from explorer.schema.messages import Turn

__all__ = ["Script", "ScriptError", "ScriptedClient", "ScriptedServer", "says"]

MODEL = "scripted"
FINISHED = {True: "tool_calls", False: "stop"}


class ScriptedServer:
    """A server on loopback that speaks OpenAI's Chat Completions API and says what a script says, request by request.

    A request beyond the script is answered with status 400.
    """

    def __init__(self, script: Sequence[Turn]) -> None:
        """Take the replies, in the order of the requests."""
        self._replies = iter(script)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests so far."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """What `OPENAI_BASE_URL`, or `Services(openai_url=...)`, takes."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Stop, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, body: dict[str, Any]) -> Turn | None:
        with self._lock:
            self.requests.append(body)
            return next(self._replies, None)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """List the one model there is."""
                self._answer(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def do_POST(self) -> None:
                """Say the next thing."""
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
                turn = take(body)
                if turn is None:
                    error = {"message": "the script has no further reply", "type": "invalid_request_error"}
                    self._answer(400, {"error": error})
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for chunk in _chunks(turn):
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")

            def _answer(self, status: int, value: object) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Write nothing."""

        return Handler


def _chunks(turn: Turn) -> Iterator[Mapping[str, object]]:
    """Yield the events of a streamed reply."""
    if turn.text:
        yield _chunk({"role": "assistant", "content": turn.text})
    for index, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        yield _chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
    yield _chunk({}, FINISHED[bool(turn.calls)])
    given, taken = turn.usage.input_tokens, turn.usage.output_tokens
    usage = {"prompt_tokens": given, "completion_tokens": taken, "total_tokens": given + taken}
    yield {**_chunk({}), "choices": [], "usage": usage}


def _chunk(delta: Mapping[str, object], finish: str | None = None) -> dict[str, object]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
