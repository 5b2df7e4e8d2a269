"""Words in, exit code out: the only readers of the environment and the only printers."""
