"""Hacker News, through its two public APIs."""
