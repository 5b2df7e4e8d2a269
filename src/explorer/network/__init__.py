"""External connections: proxies, certificate authorities, and addresses that may be reached."""
