"""Rendering, verification, comparison, search and storage of reports."""
