"""The user as services see them: the network that requests go through, and the name in the User-Agent.

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
"""The name for this program in a site's robots.txt."""
LIBRARY = f"httpx2/{version('httpx2')}"
REDDIT_NAME = re.compile(r"(?:^|[\s,;/(])/?u/([A-Za-z0-9_-]{3,20})\b")
"""A user name of Reddit, as `u/name`, `/u/name`, or at the end of a profile's address."""


@dataclass(frozen=True)
class Caller:
    """The user of this program, as services see them."""

    network: Network = field(default_factory=Network)
    contact: str = ""
    """An e-mail address, a web address or `/u/name`; empty: the user named none."""

    @property
    def user_agent(self) -> str:
        """The User-Agent: the program with its version, and how to reach its user."""
        return " ".join(part for part in (PRODUCT, self.contact and f"({self.contact})", LIBRARY) if part)

    @property
    def reddit_user_agent(self) -> str:
        """The User-Agent in Reddit's form; without a name on Reddit, with the contact."""
        known = REDDIT_NAME.search(self.contact)
        by = f"by /u/{known[1]}" if known else f"contact: {self.contact}" if self.contact else "no contact given"
        return f"{sys.platform}:explorer:v{__version__} ({by})"
