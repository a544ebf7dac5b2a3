"""The archive as one file: a ZIP of an account's canonical objects, written by `export` and read back by `import`."""
