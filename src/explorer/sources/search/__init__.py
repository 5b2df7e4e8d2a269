"""Web search: one port, and an engine behind it in each module."""
