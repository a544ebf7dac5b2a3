"""Backups: every object of an archive in another store, kept once, and a signed list for each time it was looked at."""
