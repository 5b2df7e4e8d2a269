"""Lean mode: one agent whose model fills in a form, for small models that cannot be relied on to call tools."""
