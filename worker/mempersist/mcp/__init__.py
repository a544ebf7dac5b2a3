"""The Model Context Protocol: one stateless endpoint for every protocol era, and the tools behind it.

Everything here is pure: a request's method, headers and body go in, a status, headers and a body come out.
"""
