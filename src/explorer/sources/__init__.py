"""The network as sources: pages, search engines, Hacker News, Reddit, Lobsters."""
