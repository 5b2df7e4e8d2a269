"""Pure functions on text, one for each need; they import nothing else of the project."""
