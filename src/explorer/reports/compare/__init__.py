"""Two runs beside each other: what is new, gone, changed, by claim and source."""
