"""Connections to the outside: proxies, certificate authorities, and addresses that may be reached."""
