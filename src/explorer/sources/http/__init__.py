"""Fetching over HTTP: guarded, bounded, polite, and cached."""
