"""The web page: runs shown in a browser, on the same functions and the same view of the journal as the terminal."""
