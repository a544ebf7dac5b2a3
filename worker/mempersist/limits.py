"""Every limit of the service, in one place: what enforces a bound and what reports it read the same constant."""

from __future__ import annotations

from typing import Final

PROTOCOL_VERSION: Final = "1"
CAPABILITIES_VERSION: Final = "2026-09-28"

KIB: Final = 1024
MIB: Final = 1024 * 1024

# Answers
MAX_TOOL_OUTPUT_BYTES: Final = 64 * KIB
RECOMMENDED_TOOL_OUTPUT_BYTES: Final = 48 * KIB
MAX_RECEIPT_BYTES: Final = 48 * KIB
MAX_CURSOR_BYTES: Final = 16 * KIB
MAX_SNIPPET_CHARS: Final = 500

# Writes
MAX_INLINE_JSON_WRITE_BYTES: Final = MIB
MAX_MESSAGE_CONTENT_CHARS: Final = 1_000_000
MAX_STORE_MESSAGES: Final = 1000
MAX_APPEND_MESSAGES: Final = 100
MAX_TITLE_CHARS: Final = 500
MAX_NAMESPACE_CHARS: Final = 100
MAX_ROLE_CHARS: Final = 40
MAX_TAGS: Final = 20
MAX_TAG_CHARS: Final = 64
MAX_IDEMPOTENCY_KEY_CHARS: Final = 128
MAX_COPY_REQUESTS: Final = 20
MAX_DELETE_CONVERSATIONS: Final = 100
MAX_EMPTY_CONVERSATIONS: Final = 500
"""Conversations that one call takes out of a namespace."""

# Reads
MAX_SEARCH_QUERY_CHARS: Final = 2000
MAX_SEARCH_RESULTS: Final = 20
DEFAULT_SEARCH_RESULTS: Final = 8
MAX_CONTEXT_MESSAGES: Final = 10
DEFAULT_CONTEXT_MESSAGES: Final = 2
MAX_PAGE_MESSAGES: Final = 100
MAX_PAGE_READ_BYTES: Final = 8 * MIB
"""Stored lines read for a page of messages, however many it asks for."""
DEFAULT_PAGE_MESSAGES: Final = 20
MAX_LIST_ITEMS: Final = 100
DEFAULT_LIST_ITEMS: Final = 20
MAX_BATCH_REQUESTS: Final = 20
MAX_READ_BATCH_BYTES: Final = 512 * KIB
"""Arguments of a batch: titles and tags as long as they may be, written as JSON escapes."""
MIN_BATCH_BYTES: Final = 4 * KIB
MAX_BATCH_BYTES: Final = 48 * KIB
DEFAULT_BATCH_BYTES: Final = 32 * KIB

# Imports
MAX_DIRECT_IMPORT_BYTES: Final = 16 * MIB
MAX_MULTIPART_PART_BYTES: Final = 16 * MIB
MAX_MULTIPART_PARTS: Final = 10_000
MIN_MULTIPART_PART_BYTES: Final = 5 * MIB
"""R2 takes a smaller part only as the last one, and wants all others equal in size."""
MAX_IMPORT_BYTES: Final = 16 * 1024 * MIB
UPLOAD_EXPIRY_SECONDS: Final = 7 * 24 * 3600
MAX_FILENAME_CHARS: Final = 255
MAX_CONVERSATION_BYTES: Final = 32 * MIB
WORKER_CONVERSATION_BYTES: Final = 6 * MIB
"""What a Worker's 128 MB hold of one conversation: parsed, it takes up to ten times its bytes."""
BYTES_PER_CONTAINER: Final = 32
"""A conversation may have an object or list for each so many of the bytes that its host allows it; real ones have one
in a hundred."""
BYTES_PER_NODE: Final = 256
"""The same for its messages; real ones have one in a thousand."""
MAX_JSON_DEPTH: Final = 512
MAX_TURN_CONVERSATIONS: Final = 25
MAX_TURN_BYTES: Final = 8 * MIB
MAX_TURN_ITEMS: Final = 1000
"""Items read in a turn, where most of them hold nothing to commit."""
MAX_TURN_ASSETS: Final = 50
MAX_TURN_ASSET_BYTES: Final = 64 * MIB
STAGE_PIECE_BYTES: Final = 4 * MIB
MAX_TURN_STAGE_BYTES: Final = 256 * MIB
MAX_CONVERSATION_FILES: Final = 10_000
MAX_IMPORT_FINDINGS: Final = 10_000
MAX_IMPORT_NOTES: Final = 1000
MAX_STATUS_FINDINGS: Final = 100
MAX_ASSET_BYTES: Final = 512 * MIB
MAX_ARCHIVE_MEMBERS: Final = 200_000
MAX_ARCHIVE_EXPANSION: Final = 200
"""A ZIP member that inflates to more than this many times its packed size is taken for a bomb."""

# Archive
MAX_SEGMENT_BYTES: Final = 4 * MIB
COMPACT_AFTER_SEGMENTS: Final = 64

# Background work
MAX_DELIVERIES: Final = 8
INTENT_GRACE_SECONDS: Final = 120
LEASE_SECONDS: Final = 120

# Just-written channel
RECENT_MAX_CONVERSATIONS: Final = 8
RECENT_MAX_AGE_SECONDS: Final = 24 * 3600
RECENT_MAX_MESSAGES: Final = 200

# D1 (documented limits, enforced by the embedded catalog too)
SQL_MAX_BOUND_PARAMETERS: Final = 100
SQL_MAX_STATEMENT_BYTES: Final = 100_000
SQL_MAX_VALUE_BYTES: Final = 2_000_000

# Vectorize
VECTOR_MAX_DIMENSIONS: Final = 1536
VECTOR_MAX_TOP_K: Final = 100
VECTOR_MAX_TOP_K_WITH_METADATA: Final = 20
VECTOR_MAX_UPSERT: Final = 1000
VECTOR_MAX_DELETE: Final = 100
VECTOR_MAX_GET: Final = 20
VECTOR_MAX_ID_BYTES: Final = 64
VECTOR_MAX_METADATA_BYTES: Final = 10 * KIB
VECTOR_MAX_FILTER_BYTES: Final = 2 * KIB
VECTOR_MAX_METADATA_INDEXES: Final = 10
VECTOR_METADATA_INDEXES: Final = ("account", "generation", "namespace")
"""The metadata keys that filters may name; each needs its metadata index before the first vector is written."""
VECTOR_INDEXED_STRING_BYTES: Final = 64
