"""Mempersist: the service, free of any platform. It sees the world through ``ports`` only."""

__version__ = "0.1.0"
