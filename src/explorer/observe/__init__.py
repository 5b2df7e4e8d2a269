"""What can be derived from a journal: costs, spans, log lines, and the origin of files."""
