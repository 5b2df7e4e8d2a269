"""From flags, environment and files to one frozen `Settings`."""
