"""The frozen vocabulary: messages, events, tools, settings, errors. No I/O, no vendor."""
