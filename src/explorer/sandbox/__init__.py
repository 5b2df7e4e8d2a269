"""Commands that a model writes, run where they can do no harm: by bubblewrap, by Landlock, or not at all."""
