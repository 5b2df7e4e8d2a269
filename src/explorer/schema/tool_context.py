"""What the engine gives a tool with each call: who asks, the clock, the run's files, and the store of sources."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import AwareDatetime

from explorer.schema.errors import ToolError
from explorer.schema.events import FileChange, Source, WrittenFile
from explorer.schema.messages import Frozen


class SourceDraft(Frozen):
    """A piece of evidence as a tool found it, before it has an id."""

    url: str
    """Where it can be looked up: an address, or a name with a scheme of its own, such as `census:2026/lisbon`."""
    title: str
    kind: str
    """`page`, `story`, `comments`, `search_hit`, `file`, ..."""
    via: str
    """What gave it: `hackernews`, `tavily`, `tavily-keyless`, `direct`, `reader`, `file`, ..."""
    text: str
    """What quotes and figures are looked up in."""
    author: str = ""
    published: str = ""
    """ISO date or date-time; empty when it is not known."""
    language: str = ""
    """A code such as `en`; empty when it is not known."""
    retrieved: AwareDatetime | None = None
    """When it was fetched, where that was not just now."""
    flags: tuple[str, ...] = ()


Store = Callable[[Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store drafts and return their sources, in order; the same text at the same URL keeps its id."""


class RunFiles(Protocol):
    """The files of a run, for tools. A path is relative to the run's folder; none leads out of it."""

    def exists(self, path: str) -> bool:
        """Return whether a file is there."""
        ...

    def read_text(self, path: str) -> str:
        """Return a text file's content.

        Raises:
            ToolError: It is not there, or no text; the message is for the model.
        """
        ...

    def write_text(self, path: str, text: str) -> WrittenFile:
        """Create or replace a text file; the index of the agent's files then has it.

        Raises:
            ToolError: It may not be written there, or the folder is full; the message is for the model.
        """
        ...


async def no_store(drafts: Sequence[SourceDraft]) -> list[Source]:
    """Refuse to store: the call is not part of a run.

    Raises:
        ToolError: Always.
    """
    raise ToolError(f"there is no run to store {len(drafts)} sources in")


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use during one call.

    The defaults are for a tool that is called outside of a run, such as in a test of it.
    """

    workspace: RunFiles
    """The run's files. What is written through it is recorded with the call."""
    call: str = ""
    """The call's key, such as `searcher-2.t3.1`: unique in the run, and the same when a resumed run calls again."""
    agent: str = ""
    """Who calls, such as `searcher-2`."""
    role: str = ""
    """What that agent is, such as `searcher`."""
    store: Store = no_store
    """Puts evidence into the run's store of sources and returns it with its ids (`S12`), in the drafts' order.

    When it returns, text and record are on disk. The ids are recorded with the call, and the model is told which
    of the sources repeat others. The tool shows the ids: a report may cite `[S12]` from then on.
    """
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The run's clock."""
    progress: Callable[[str], None] = lambda _words: None
    """Takes a few words on how far a long call is, for the user; no model sees them."""
    change: FileChange | None = None
    """For `checked` tools: the change that is on record for this call, as `foresee` returned it."""
