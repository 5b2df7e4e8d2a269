"""The user's own folder, indexed so that it can be searched with no service at all."""
