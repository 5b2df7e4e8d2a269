"""A call that waits for approval, as the page of its run shows it: each argument whole, nothing in it unseen."""

from dataclasses import dataclass

from explorer.observe.formatting import MAX_SHOWN_CHARS, exact
from explorer.schema.approvals import ApprovalRequest


@dataclass(frozen=True)
class AskedCall:
    """What somebody decides about."""

    call: str
    """The call's key."""
    agent: str
    tool: str
    rule: str
    """The rule that asks."""
    arguments: tuple[tuple[str, str], ...]
    """Each argument by its name; characters that cannot be seen are escapes."""


def asked_of(request: ApprovalRequest | None) -> AskedCall | None:
    """Return what is shown of a request."""
    if request is None:
        return None
    arguments = tuple(
        (name, _cut(exact(value if isinstance(value, str) else repr(value))))
        for name, value in request.arguments.items()
    )
    return AskedCall(request.call, request.agent, request.tool, exact(request.rule), arguments)


def _cut(text: str) -> str:
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[:MAX_SHOWN_CHARS]}\n... {len(text) - MAX_SHOWN_CHARS:,} more characters, which are not shown"
