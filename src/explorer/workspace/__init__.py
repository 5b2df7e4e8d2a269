"""A run's files, and the store of its sources."""
