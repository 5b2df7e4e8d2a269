"""Sources on the network: pages, search engines, and sites that are read through a service."""
