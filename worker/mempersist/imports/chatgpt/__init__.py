"""ChatGPT's format: one conversation object of an export to one conversation of the archive."""
