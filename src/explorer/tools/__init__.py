"""The tools, one file for each family."""
