"""The catalog: the archive projected into SQL, and the questions asked of it, one module each."""
