"""What is computed from a journal: costs, spans, log lines, and the provenance of files."""
