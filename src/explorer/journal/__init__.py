"""What happened in a run, and the state that is computed from it."""
