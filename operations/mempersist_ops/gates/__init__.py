"""Approval gates: no change to a deployment without a signed, expiring, single-use approval of exactly that change."""
