"""The text of HTML, PDF, office files, books and feeds from other sites, parsed in separate processes with limits."""
