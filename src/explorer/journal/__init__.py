"""What happened in a run, and the state that is derived from it."""
