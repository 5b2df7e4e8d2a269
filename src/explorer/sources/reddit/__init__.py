"""Reddit, through its API, an archive, or its feeds."""
