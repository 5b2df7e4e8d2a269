"""A fleet: many runs on many workers, from a queue in one database."""
