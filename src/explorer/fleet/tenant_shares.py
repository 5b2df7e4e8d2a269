"""How many times as much of a fleet's workers a tenant gets as one without a share."""

import sqlalchemy as sa

from explorer.fleet.database import FleetDatabase
from explorer.fleet.limit_tables import SHARES


def put_share(database: FleetDatabase, tenant: str, share: int) -> None:
    """Set the share of a tenant; 1 is that of all others, and removes it.

    Raises:
        StorageError: The database does not answer.
    """
    with database.transaction() as connection:
        connection.execute(sa.delete(SHARES).where(SHARES.c.tenant == tenant))
        if share != 1:
            connection.execute(sa.insert(SHARES).values(tenant=tenant, share=share))


def shares_of(database: FleetDatabase) -> dict[str, int]:
    """Return the tenants that have a share, with it.

    Raises:
        StorageError: The database does not answer.
    """
    chosen = sa.select(SHARES.c.tenant, SHARES.c.share).order_by(SHARES.c.tenant)
    with database.transaction() as connection:
        return {str(tenant): int(share) for tenant, share in connection.execute(chosen)}
