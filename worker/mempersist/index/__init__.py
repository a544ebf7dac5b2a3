"""The index: chunks of conversations, their full text and their vectors. All of it can be made again."""
