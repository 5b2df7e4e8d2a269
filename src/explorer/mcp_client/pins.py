"""The descriptions of MCP tools that the user has accepted, as digests in the user's own folder.

The first listing of a server is accepted, for the user has just configured it. From then on a description that changes
is refused, because it could tell models something else than what was looked at.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from explorer.schema.mcp import McpServer
from explorer.workspace.safe_open import replace_private


@dataclass(frozen=True)
class Pin:
    """What was accepted of one tool."""

    sha256: str
    """The digest of all that its server said of it."""
    description: str
    """Its description then, for people who look at a change."""


@dataclass(frozen=True)
class Pins:
    """What is accepted of one server's tools, by the server's names of them."""

    path: Path | None
    """Where they are kept; None: nowhere, so nothing is remembered."""
    accepted: Mapping[str, Pin] | None
    """None: the server was never listed before."""

    @classmethod
    def of(cls, server: McpServer, state_dir: Path | None) -> "Pins":
        """Return what is accepted of a server; one that is started or reached in another way is another server."""
        if state_dir is None:
            return cls(None, None)
        identity = json.dumps([server.name, server.command, server.args, server.url, str(server.base)])
        path = state_dir / "mcp" / f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}.json"
        return cls(path, _read(path))

    def problem(self, tool: str, digest: str) -> str:
        """Return why a tool is refused; empty where it is accepted."""
        if self.accepted is None or self.digest(tool) == digest:
            return ""
        return "its description has changed" if tool in self.accepted else "it is new"

    def digest(self, tool: str) -> str:
        """Return what is accepted of a tool; empty: nothing."""
        pin = (self.accepted or {}).get(tool)
        return pin.sha256 if pin else ""

    def keep(self, pins: Mapping[str, Pin]) -> None:
        """Accept these tools and no others.

        Raises:
            OSError: The disk refused.
        """
        if self.path is None:
            return
        shown = {name: asdict(pin) for name, pin in pins.items()}
        replace_private(self.path, json.dumps(shown, indent=1).encode())


def _read(path: Path) -> Mapping[str, Pin] | None:
    """Return what a file has; None where there is none. A damaged one accepts nothing."""
    try:
        return TypeAdapter(dict[str, Pin]).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
