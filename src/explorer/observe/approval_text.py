"""A call that waits for approval, for the people who decide on it: what is shown is exactly what will be done."""

import unicodedata

from explorer.observe.formatting import counted
from explorer.schema.approvals import ApprovalRequest

MAX_SHOWN_CHARS = 24_000
"""The characters of one argument that are shown: more than any command for a shell has."""


def described(request: ApprovalRequest) -> str:
    """Return what exactly an agent wants to do: each argument whole, with what cannot be seen as an escape."""
    lines = [f"{request.agent} needs your approval: {request.tool} (your rule: {exact(request.rule)})"]
    for name, value in request.arguments.items():
        text = exact(value if isinstance(value, str) else repr(value))
        first, *more = text[:MAX_SHOWN_CHARS].split("\n")
        lines += [f"  {name}: {first}", *(f"  {'':<{len(name)}}| {line}" for line in more)]
        if len(text) > MAX_SHOWN_CHARS:
            lines.append(f"  and {counted(len(text) - MAX_SHOWN_CHARS, 'character')} more that are not shown")
    return "\n".join(lines)


def exact(text: str) -> str:
    """Return a text in which control, format and other unseen characters are escapes: what is shown is what is done."""
    return "".join(
        c if c == "\n" or unicodedata.category(c)[0] not in {"C", "Z"} or c == " " else _escaped(c) for c in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
