"""Sources on the network: guarded fetching, pages, search engines, Hacker News, Reddit."""
