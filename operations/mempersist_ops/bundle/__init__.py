"""The bundle: exactly the modules that are uploaded as the Worker, the same bytes from the same sources every time."""

from mempersist_ops.bundle.build import build, write
from mempersist_ops.bundle.form import upload_form
from mempersist_ops.bundle.modules import Bundle, BundleError, Module, Sources, find_sources

__all__ = ["Bundle", "BundleError", "Module", "Sources", "build", "find_sources", "upload_form", "write"]
