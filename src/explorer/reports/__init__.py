"""From a draft to a checked report, and what is done with reports."""
