"""From bytes to text, and a searchable index of a folder."""
