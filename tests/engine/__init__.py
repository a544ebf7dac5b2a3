"""Test equipment: the real Pulumi engine, a language host of our own, and a stand-in for the Cloudflare provider."""
