"""The archive's bucket, what may not be deleted from it for a while, and what is cleared away by itself."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Component, Context

DAY_SECONDS: Final = 86_400
UPLOADS_LOCKED_SECONDS: Final = 6 * DAY_SECONDS
"""Uploads are deleted with their account alone, seven days after that was asked for and the account became read-only,
so the youngest of them is older than this by then."""
UPLOAD_ABANDONED_SECONDS: Final = 7 * DAY_SECONDS


class Storage(Component):
    """The bucket.

    Locks name prefixes, and below ``canonical/`` the service deletes at any age: a conversation's bodies go as soon as
    its tombstone stands, an account's log when the account is deleted, and everything of one conversation lies below
    one prefix. A lock of any age there would hold back what the archive's owner asked to have deleted. So the age there
    is zero, which is no lock: those objects are safe by their keys, which are never written twice. Uploads and the
    format's own object are locked.
    """

    bucket: cloudflare.R2Bucket

    def __init__(self, context: Context) -> None:
        super().__init__("Storage", context)
        context, settings = context.within(self), context.settings
        self.bucket = cloudflare.R2Bucket(
            "archive",
            account_id=context.account,
            name=context.names.bucket,
            location=settings.location,
            jurisdiction=settings.jurisdiction,
            storage_class="Standard",
            opts=pulumi.ResourceOptions.merge(
                context.options(ignore=("location", "jurisdiction", "storageClass"), keeps_data=True),
                pulumi.ResourceOptions(retain_on_delete=settings.keep_archive or None),
            ),
        )
        cloudflare.R2BucketLock(
            "archive-lock",
            account_id=context.account,
            bucket_name=self.bucket.name,
            jurisdiction=settings.jurisdiction,
            rules=[
                _locked("uploads", "raw/imports/", UPLOADS_LOCKED_SECONDS),
                {
                    "id": "format",
                    "enabled": True,
                    "prefix": "canonical/format.json",
                    "condition": {"type": "Indefinite"},
                },
            ],
            opts=context.options(),
        )
        cloudflare.R2BucketLifecycle(
            "archive-lifecycle",
            account_id=context.account,
            bucket_name=self.bucket.name,
            jurisdiction=settings.jurisdiction,
            # R2's own rule is said again, as the whole list is replaced by what stands here.
            rules=[_abort("Default Multipart Abort Rule", ""), _abort("Abandoned uploads", "raw/imports/")],
            opts=context.options(),
        )


def _locked(name: str, prefix: str, seconds: int) -> cloudflare.R2BucketLockRuleArgsDict:
    return {"id": name, "enabled": True, "prefix": prefix, "condition": {"type": "Age", "max_age_seconds": seconds}}


def _locked_for_ever(name: str, prefix: str) -> cloudflare.R2BucketLockRuleArgsDict:
    return {"id": name, "enabled": True, "prefix": prefix, "condition": {"type": "Indefinite"}}


def _abort(name: str, prefix: str) -> cloudflare.R2BucketLifecycleRuleArgsDict:
    return {
        "id": name,
        "enabled": True,
        "conditions": {"prefix": prefix},
        "abort_multipart_uploads_transition": {"condition": {"type": "Age", "max_age": UPLOAD_ABANDONED_SECONDS}},
    }
