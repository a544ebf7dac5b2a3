"""Recovery: what brings the catalog back from the archive, and what mends by itself."""
