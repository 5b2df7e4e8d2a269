"""The ids of provider keys: what is in the fleet's database in place of a key."""

import hashlib
import hmac
from dataclasses import dataclass

from explorer.llm.models import ModelSetup

ID_CHARS = 10


@dataclass(frozen=True)
class KeyIds:
    """Makes the id of the key that a worker uses for a vendor's models.

    It is the vendor's name and the beginning of a keyed hash: the same for all workers with the same key, and of no use
    to anybody who reads the database. A vendor without a key has one for its server's address.
    """

    salt: str
    """The fleet's secret for its hashes; all workers read the same one from the store."""
    setup: ModelSetup

    def vendor_of(self, prefix: str) -> str:
        """Return the name of the vendor of a model's prefix."""
        return self.setup.contact_of(prefix)

    def id_of(self, prefix: str) -> str:
        """Return the id of the key for models with a prefix."""
        vendor = self.setup.vendor_of(prefix)
        secret = (vendor.needed or vendor.server.url) if vendor is not None else ""
        digest = hmac.new(self.salt.encode(), secret.encode(), hashlib.sha256).hexdigest()
        return f"{self.vendor_of(prefix)}-{digest[:ID_CHARS]}"
