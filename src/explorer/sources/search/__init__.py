"""Web search: a port, and one module for each engine."""
