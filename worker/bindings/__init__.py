"""Cloudflare's bindings as the service's ports: the only code, with ``entry.py``, that knows of JavaScript.

Every adapter talks to the binding itself, not to the SDK's wrapper of it. The wrapper converts deep values item by
item, walks a memoryview byte by byte, and turns an absent argument into null; JSON text crosses in one piece.
"""
