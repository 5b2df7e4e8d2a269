"""A model of your own: one method that asks a server over HTTP, for an API that explorer does not speak.

    uv run python examples/own_model.py

The server is on this machine and follows a script, so this runs without a key.
"""

import asyncio
import json
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from explorer import (
    Agent,
    ModelError,
    ModelFault,
    Request,
    Results,
    Settings,
    StopKind,
    ToolCall,
    Turn,
    Usage,
    UserText,
    tool,
)

OK, RATE_LIMITED = 200, 429
STOPS = {"done": StopKind.END, "calling": StopKind.TOOL_USE, "length": StopKind.MAX_TOKENS}
"""From the server's words to explorer's; a word that is not here ends the agent with an error."""


@tool
async def count_stock(item: str) -> str:
    """Return how many of an item are in stock."""
    return f"{item}: {len(item)}"


class ParrotClient:
    """A client of the API of this example."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        """Take what sends requests; it is closed by whoever opened it."""
        self._http = http

    async def generate(self, request: Request) -> Turn:
        """Send a request once."""
        try:
            answer = await self._http.post("/talk", json=_body(request))
        except httpx2.TransportError as error:
            raise ModelError(ModelFault.TRANSPORT, f"the parrot does not answer: {error}") from error
        if answer.status_code != OK:
            fault = ModelFault.RATE_LIMITED if answer.status_code == RATE_LIMITED else ModelFault.REJECTED
            raise ModelError(fault, f"the parrot refuses with status {answer.status_code}")
        reply: dict[str, Any] = answer.json()
        return Turn(
            provider="parrot",
            model=request.model,
            blocks=(reply,),  # as it came: what the server wants back in the next request
            text=reply["text"],
            calls=tuple(ToolCall(id=call["id"], name=call["tool"], arguments=call["input"]) for call in reply["calls"]),
            stop=STOPS.get(reply["stop"], StopKind.UNKNOWN),
            stop_detail=reply["stop"],
            usage=Usage(input_tokens=reply["tokens"][0], output_tokens=reply["tokens"][1]),
            cost_usd=0.0,
        )


def _body(request: Request) -> dict[str, object]:
    """Return a request in the server's form."""
    return {
        "system": request.system,
        "tools": [tool.model_dump() for tool in request.tools],
        "messages": [line for message in request.history for line in _lines(message)],
        "max_tokens": request.max_output_tokens,
    }


def _lines(message: object) -> Iterator[dict[str, object]]:
    """Yield a message in the server's form: a text for the model, its own turn, or the results of its calls."""
    match message:
        case UserText():
            yield {"from": "user", "text": message.text}
        case Turn():
            yield {"from": "parrot", "said": message.blocks[0]}
        case Results():
            for result in message.results:
                yield {"from": "tool", "id": result.id, "text": result.content, "failed": result.is_error}
        case _:
            raise TypeError(f"no such message: {message!r}")


class Parrot(BaseHTTPRequestHandler):
    """The server: it asks for the ropes, and repeats what it is told."""

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = [line["text"].strip("<>") for line in body["messages"] if line["from"] == "tool"]
        calls = [] if told else [{"id": "1", "tool": "count_stock", "input": {"item": "rope"}}]
        reply = {"text": " ".join(told), "calls": calls, "stop": "done" if told else "calling", "tokens": [50, 5]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Write no log."""


@contextmanager
def parrot() -> Generator[str]:
    """Start the server, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


async def main(workspace: Path) -> None:
    """Ask one agent something, and print what it did."""
    settings = Settings(workspace=workspace, shell="off")
    with parrot() as url:
        async with httpx2.AsyncClient(base_url=url) as http:
            agent = Agent(tools=[count_stock], settings=settings, client=ParrotClient(http))
            result = await agent.run("How many ropes are there?")
    print(f"{result.status}: {result.words} ({result.steps} turns, {result.usage.total_tokens} tokens)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
