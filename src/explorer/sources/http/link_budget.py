"""What the owner of a domain can learn from the links that a run follows, and how much of it is too much.

A page that links to N addresses of a domain offers its owner log2(N) bits with each of them that is read: which one
says as much as one of N letters. So bits are counted, for a domain as it is registered and paid for, because below it
its owner can have any number of names. A service where everybody may have a name (`NAME.github.io`) counts as one
domain, too: a stranger may have a name there for each letter.
"""

import ipaddress
import math
from functools import lru_cache

from tld import get_fld  # pyright: ignore[reportUnknownVariableType] - of further arguments

from explorer.schema.errors import RefusedCallError
from explorer.text.rendering import own

LINK_BITS = 104.0
"""What all links to one domain may say in a run: 20 letters of an alphabet of 36. A key has 128 bits or more.

It is enough to follow 20 links of a page with 36, 13 of one with 250, or 10 of one with 1,000.
"""
LIBRARY_BITS = 4 * LINK_BITS
"""The same for a library: 40 links of pages with 1,200."""
LIBRARIES = frozenset(
    {
        "arxiv.org",
        "github.com",
        "gitlab.com",
        "stackexchange.com",
        "stackoverflow.com",
        "wikimedia.org",
        "wikipedia.org",
        "ycombinator.com",
    }
)
"""Large domains whose pages are by many authors, and whose authors do not see which page was read when, or by whom."""
LEAST_BITS = 1.0
"""What a link says that is the only one: that it was followed."""


@lru_cache(maxsize=16_384)
def registrable_domain(host: str) -> str:
    """Return the domain of a host as one can register it: `b.co.uk` of `a.b.co.uk`; of an IP address, itself.

    Of the Public Suffix List only the registries' part counts, not the part with services that lend out names.
    """
    name = host.partition(":")[0].strip(".").lower() if host.count(":") <= 1 else host
    if _is_address(name):
        return name
    found = get_fld(f"https://{name}", fail_silently=True, search_private=False) if name.isascii() else None
    return found if isinstance(found, str) else ".".join(name.split(".")[-2:])


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class LinkBudget:
    """Counts, for each registrable domain, the links that pages offer and the bits of those that were followed."""

    def __init__(self) -> None:
        self._offered: dict[str, set[str]] = {}
        self._spent: dict[str, float] = {}

    def offer(self, domain: str, key: str) -> None:
        """Note an address of a domain that a page links to."""
        self._offered.setdefault(domain, set()).add(key)

    def bits(self, domain: str) -> float:
        """Return what following one of the links to a domain says now."""
        return max(LEAST_BITS, math.log2(max(1, len(self._offered.get(domain, ())))))

    def count(self, domain: str) -> None:
        """Count a link that was followed."""
        self._spent[domain] = self._spent.get(domain, 0.0) + self.bits(domain)

    def follow(self, domain: str) -> None:
        """Count a link that is about to be followed.

        Raises:
            RefusedCallError: The links to its domain that were followed have said enough.
        """
        most = LIBRARY_BITS if domain in LIBRARIES else LINK_BITS
        if self._spent.get(domain, 0.0) + self.bits(domain) > most:
            raise RefusedCallError(
                own(
                    "so many links to {domain} were followed already that it is enough for one run; search for what "
                    "you need there, or use another source.",
                    domain=domain,
                )
            )
        self.count(domain)
