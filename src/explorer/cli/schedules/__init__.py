"""Topics that are explored again and again: what is kept of each, and the entries that start them."""
