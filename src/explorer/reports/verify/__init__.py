"""What a program can say of a report: which cited sentences their stored sources carry."""
