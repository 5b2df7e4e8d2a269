"""Who asks the services that sources come from: over which network, and under which name.

Wikimedia asks for `<client>/<version> (<contact>) <library>/<version>`
(https://foundation.wikimedia.org/wiki/Policy:Wikimedia_Foundation_User-Agent_Policy), Reddit for
`<platform>:<app ID>:<version> (by /u/<user>)` (https://github.com/reddit-archive/reddit/wiki/API).
"""

import re
import sys
from dataclasses import dataclass, field
from importlib.metadata import version

from explorer.schema.network import Network
from explorer.schema.version import __version__

PRODUCT = f"explorer/{__version__}"
"""The name by which sites can speak to us in their robots.txt."""
LIBRARY = f"httpx2/{version('httpx2')}"
REDDIT_NAME = re.compile(r"(?:^|[\s,;/(])/?u/([A-Za-z0-9_-]{3,20})\b")
"""A user of Reddit's, as `u/name`, `/u/name`, or the end of a profile's address."""


@dataclass(frozen=True)
class Caller:
    """One user of this program."""

    network: Network = field(default_factory=Network)
    contact: str = ""
    """An e-mail address, a web address or `/u/name`; empty: the user named none."""

    @property
    def user_agent(self) -> str:
        """Return what is sent as User-Agent: the program and its version, and how to reach who runs it."""
        return " ".join(part for part in (PRODUCT, self.contact and f"({self.contact})", LIBRARY) if part)

    @property
    def reddit_user_agent(self) -> str:
        """Return it in Reddit's form; without a name on Reddit, the contact there is."""
        known = REDDIT_NAME.search(self.contact)
        by = f"by /u/{known[1]}" if known else f"contact: {self.contact}" if self.contact else "no contact given"
        return f"{sys.platform}:explorer:v{__version__} ({by})"
