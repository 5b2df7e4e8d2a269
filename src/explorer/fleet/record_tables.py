"""Tables of what runs leave behind: the lines of their journals, their files, and orders to them.

They are apart from the tables of the queue, which decides who may write here: each write names its worker and epoch.
"""

import sqlalchemy as sa


def record_tables(metadata: sa.MetaData) -> tuple[sa.Table, sa.Table, sa.Table, sa.Table]:
    """Add the tables to those of a database.

    Returns:
        Batches: what one commit of a run's journal added: whole lines, and the versions of the files that are new with
            them, as JSON. All lines of a run, in the order of `number`, are its journal.
        Contents: pieces of files, by their SHA-256. They belong to one run each, so that a run can be removed at once,
            no run waits for another one's, and nobody learns what another tenant has stored. A content with a `place`
            is in the object store.
        Orders: messages to runs. One is removed in the transaction that puts it on record in the run's journal.
        Inputs: files that were submitted with a question, until its run has ended (`inputs.py`).
    """
    batches = sa.Table(
        "explorer_batches",
        metadata,
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("lines", sa.LargeBinary, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
    )
    contents = sa.Table(
        "explorer_contents",
        metadata,
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
    )
    orders = sa.Table(
        "explorer_orders",
        metadata,
        sa.Column("order_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Index("explorer_orders_of_run", "run_id"),
    )
    inputs = sa.Table(
        "explorer_inputs",
        metadata,
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    return batches, contents, orders, inputs
