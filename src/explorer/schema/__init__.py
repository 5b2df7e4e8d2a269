"""Frozen types of the whole engine: messages, events, tools, settings, errors. No I/O, no vendor."""
