"""Cloudflare on this machine: its REST API and R2's S3 API, as an ASGI application over SQLite and files.

It answers in the envelope, with the codes, limits, pages and headers that Cloudflare documents, holds SQL to D1's
rules, lets Vectorize's mutations be seen late, leases queue messages, checks bearer tokens and AWS signatures, and
breaks on demand (``faults.py``). Where nothing documents an answer the module says that it is made up. The emulator was
never compared with the real service.
"""
