"""The text of documents, and a search index of a folder."""
