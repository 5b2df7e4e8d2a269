"""The text of HTML, PDF and feeds from other sites, parsed in separate processes with limits."""
