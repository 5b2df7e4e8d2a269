"""The tables of the limits that all runs of a fleet share.

A limit is a row of `LIMITS`. What was spent of it in one day, month or in all is a row of `SPENDING`. What a run at
work may spend without asking again is a row of `HELD`. So what is left of a limit is its amount, less what is spent,
less what is held. Amounts are whole numbers: tokens, requests, and billionths of a dollar.
"""

import sqlalchemy as sa

METADATA = sa.MetaData()
"""All tables of a fleet's database."""


def _names() -> list[sa.Column[str]]:
    """Return the columns that name a limit."""
    return [sa.Column(name, sa.Text, primary_key=True) for name in ("scope", "subject", "unit", "period")]


LIMITS = sa.Table("explorer_limits", METADATA, *_names(), sa.Column("amount", sa.BigInteger, nullable=False))
"""One row a limit: of what (`unit`), for whom (`scope`, `subject`), in which time (`period`)."""
SPENDING = sa.Table(
    "explorer_spending",
    METADATA,
    *_names(),
    sa.Column("window", sa.Text, primary_key=True),
    sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("held", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("refused", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("wanted_at", sa.Double, nullable=False, server_default="0"),
)
"""One row a limit and a day or month. `refused` is the latest need for which too little was left; `wanted_at` is when a
request last waited for what others hold."""
HELD = sa.Table(
    "explorer_held",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    *_names(),
    sa.Column("window", sa.Text, primary_key=True),
    sa.Column("held", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("after_seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("is_presumed", sa.Boolean, nullable=False, server_default=sa.false()),
)
"""What one taking of a run holds of a limit, and what of it was reported as spent. `after_seq` is the last record of
the journal before it. `is_presumed`: its worker died, and what it held counts as spent until its journal is read."""
RATES = sa.Table(
    "explorer_rates",
    METADATA,
    sa.Column("key_id", sa.Text, primary_key=True),
    sa.Column("requests", sa.Integer),
    sa.Column("period_s", sa.Double),
    sa.Column("next_at", sa.Double, nullable=False, server_default="0"),
    sa.Column("closed_until", sa.Double, nullable=False, server_default="0"),
    sa.Column("closed_why", sa.Text, nullable=False, server_default=""),
)
"""One row a provider key with a rate, or that was throttled. `next_at` is when the next request may be sent;
`closed_until` is until when none may, because the provider asked one of the workers to wait."""
TENANTS = sa.Table(
    "explorer_tenants",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("served_at", sa.Double, nullable=False, server_default="0"),
)
"""One row a tenant, with the time when a run of its was last taken."""
SHARES = sa.Table(
    "explorer_tenant_shares",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("share", sa.Integer, nullable=False),
)
"""One row a tenant that gets more of the workers than others: so many times as much."""
