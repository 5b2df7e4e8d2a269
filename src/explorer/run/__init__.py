"""One run from start to end: opened, worked on, finished, resumed, forked, archived."""
