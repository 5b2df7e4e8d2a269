"""A search index of the user's own folder, which needs no service."""
