"""Verification: every object re-hashed, every chain walked, the catalog and the index held against the archive."""

from mempersist.recovery.verify.findings import FINDINGS, Finding, Slice, Verification
from mempersist.recovery.verify.walk import verify

__all__ = ["FINDINGS", "Finding", "Slice", "Verification", "verify"]
