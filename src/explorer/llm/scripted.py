"""A client that replies from a script: for tests, examples and demonstrations without a model."""

from collections.abc import Callable, Sequence

from explorer.schema.messages import JsonObject, Request, StopKind, ToolCall, Turn, Usage

Script = Callable[[Request], Turn]
"""Return the reply as a pure function of the request, so that a resumed run gets the same one."""


class ScriptError(AssertionError):
    """The script and the run do not agree: a call too many, or a reply too few."""


class ScriptedClient:
    """Answers by role: from a list, one reply a request, or from a function of the request.

    Args:
        scripts: For each role, its replies in order or a function. The next reply of a list depends on the turns in
            the history, not on the requests made, so that a retried or resumed request gets the same one. All agents
            of a role get the same replies.
    """

    def __init__(self, scripts: dict[str, Sequence[Turn] | Script]) -> None:
        self._scripts = scripts
        self.requests: list[Request] = []
        """All requests so far."""

    async def generate(self, request: Request) -> Turn:
        """Return the next reply.

        Raises:
            ScriptError: The script has no reply for this request.
        """
        self.requests.append(request)
        script = self._scripts.get(request.role)
        if script is None:
            raise ScriptError(f"the script has nothing for the role {request.role!r}")
        if callable(script):
            return script(request)
        taken = sum(isinstance(message, Turn) for message in request.history)
        if taken >= len(script):
            raise ScriptError(f"{request.agent} asks for reply {taken + 1}; the script has {len(script)}")
        return script[taken]


def says(text: str, *calls: tuple[str, JsonObject], stop: StopKind | None = None, cost_usd: float = 0.0) -> Turn:
    """Return a reply: text, and calls as (tool name, arguments)."""
    asked = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(calls, 1)
    )
    blocks: tuple[JsonObject, ...] = ({"text": text, "calls": [call.model_dump() for call in asked]},)
    return Turn(
        provider="scripted",
        model="scripted",
        blocks=blocks,
        text=text,
        calls=asked,
        stop=stop or (StopKind.TOOL_USE if asked else StopKind.END),
        usage=Usage(input_tokens=100, output_tokens=20),
        cost_usd=cost_usd,
    )
