"""What a terminal shows: the live view, pages, tables, and lines."""
