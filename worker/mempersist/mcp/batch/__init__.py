"""Reading many conversations at once: what is left to read, which messages fit, and the cursor between the calls."""
