"""A finished report in the formats that people and programs read: HTML, PDF, Word, JSON."""
