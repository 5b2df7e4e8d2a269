"""What a run stores beside its events: files, sources, and the change that is about to be made to a file."""

from pydantic import AwareDatetime

from explorer.schema.messages import Frozen


class WrittenFile(Frozen):
    """One file an agent wrote, as it stood right after the write."""

    path: str
    """Relative to the run's folder."""
    title: str
    """Its first heading or first words."""
    lines: int
    bytes: int
    sha256: str


class Source(Frozen):
    """One stored piece of evidence; its text is in `.explorer/sources/<id>.md`."""

    id: str
    """`S1`, `S2`, ... in the order of storing."""
    url: str
    """Where it can be looked up; `file:<path>` for a local file."""
    title: str
    kind: str
    """`page`, `story`, `comments`, `search_hit`, `file`, ..."""
    via: str
    """What gave it: `hackernews`, `tavily-keyless`, `direct`, `reader`, `file`, ..."""
    author: str = ""
    published: str = ""
    """ISO date or date-time, as far as the source tells it; empty when it does not."""
    retrieved: AwareDatetime
    sha256: str
    """Of the stored text."""
    chars: int
    language: str = ""
    """Of the text, a code like `en`, as far as it is known."""
    flags: tuple[str, ...] = ()
    """`truncated`, `paywall`, `challenge`, `script_shell`, `stale`, `sample`, ..."""


class FileChange(Frozen):
    """What a `checked` tool is about to do to a file, so that after a crash we compare and know."""

    path: str
    before: str
    """sha256 of the file's bytes; empty when it does not exist."""
    after: str
