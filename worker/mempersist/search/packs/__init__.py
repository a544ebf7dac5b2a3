"""What goes into a context pack: conversations that are named, those they point to, and what searches find.

Nothing here is written, summarised or guessed; ``mcp.packs`` fits the material into an answer.
"""
