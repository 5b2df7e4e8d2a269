"""Skills: methods for one kind of work, in the open Agent Skills format, which agents load when they need them."""
