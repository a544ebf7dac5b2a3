"""The archive: canonical objects in the object store, and the only place that knows their keys and formats."""
