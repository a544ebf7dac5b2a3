"""The Worker on this machine: its bundle in Pyodide under Node, over Miniflare's real D1, R2 and Queues."""
