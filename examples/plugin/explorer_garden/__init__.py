"""What grows in a garden: a package that extends explorer by entry points."""
