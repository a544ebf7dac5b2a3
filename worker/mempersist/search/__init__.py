"""Search: three channels, one ranking, and the text around a hit."""
