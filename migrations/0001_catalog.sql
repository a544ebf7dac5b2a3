-- The catalog: a projection of the canonical objects, and the operational state beside it.
-- Projected tables come back row for row from a rebuild; each of their values stems from an object in the store,
-- never from the clock. Times are ISO 8601 UTC text with milliseconds.

-- ---------------------------------------------------------------- projected from the archive

CREATE TABLE accounts (
  account_id TEXT PRIMARY KEY,
  email TEXT,
  display_name TEXT,
  default_namespace TEXT NOT NULL,
  created_at TEXT NOT NULL,
  log_seq INTEGER NOT NULL,
  log_hash TEXT NOT NULL
) STRICT;

CREATE TABLE namespaces (
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  namespace TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (account_id, namespace)
) STRICT, WITHOUT ROWID;

-- One row a conversation, as its newest head entry says. A tombstone keeps its row with deleted_at set, no title and
-- no revision.
CREATE TABLE conversations (
  conversation_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  namespace TEXT NOT NULL,
  title TEXT NOT NULL,
  source_type TEXT NOT NULL,
  source_id TEXT,
  created_at TEXT,
  updated_at TEXT NOT NULL,
  stored_at TEXT NOT NULL,
  head_seq INTEGER NOT NULL,
  head_hash TEXT NOT NULL,
  revision_id TEXT,
  current_source_node_id TEXT,
  node_count INTEGER NOT NULL,
  message_count INTEGER NOT NULL,
  deleted_at TEXT
) STRICT;
CREATE INDEX conversations_recent ON conversations (account_id, updated_at DESC, conversation_id) WHERE deleted_at IS NULL;
CREATE INDEX conversations_namespace ON conversations (account_id, namespace, updated_at DESC, conversation_id) WHERE deleted_at IS NULL;
CREATE INDEX conversations_title ON conversations (account_id, title) WHERE deleted_at IS NULL;

CREATE TABLE conversation_tags (
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  account_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_tags_tag ON conversation_tags (account_id, tag, conversation_id);

CREATE TABLE revisions (
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  revision_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  operation TEXT NOT NULL,
  import_id TEXT,
  content_hash TEXT NOT NULL,
  nodes_digest TEXT NOT NULL,
  manifest_key TEXT NOT NULL,
  node_count INTEGER NOT NULL,
  segment_count INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (conversation_id, revision_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX revisions_import ON revisions (import_id) WHERE import_id IS NOT NULL;

-- The nodes of each conversation's current revision. ordinal: place among all nodes; sequence: place among the messages
-- that a reader of the active branch is shown, null for all others. byte_offset and byte_length locate the node's line in its segment.
CREATE TABLE messages (
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  source_node_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  parent_source_node_id TEXT,
  role TEXT NOT NULL,
  sequence INTEGER,
  created_at TEXT,
  segment_sha256 TEXT NOT NULL,
  byte_offset INTEGER NOT NULL,
  byte_length INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, source_node_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_sequence ON messages (conversation_id, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX messages_ordinal ON messages (conversation_id, ordinal);

-- Which write an idempotency key stands for, so that a repeated request is answered and not done again.
CREATE TABLE idempotency_keys (
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  head_seq INTEGER NOT NULL,
  revision_id TEXT NOT NULL,
  PRIMARY KEY (account_id, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_conversation ON idempotency_keys (conversation_id);

-- Bytes that came with an export: one row a distinct content of an asset id.
CREATE TABLE assets (
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  asset_id TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  filename TEXT,
  import_id TEXT NOT NULL,
  object_key TEXT NOT NULL,
  PRIMARY KEY (account_id, asset_id, sha256)
) STRICT, WITHOUT ROWID;

-- Finished imports, from their receipts. Every counter is of this import alone.
CREATE TABLE imports (
  import_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  namespace TEXT NOT NULL,
  source_type TEXT NOT NULL,
  filename TEXT NOT NULL,
  object_key TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('complete', 'complete_with_errors', 'failed', 'duplicate')),
  duplicate_of TEXT,
  error_code TEXT,
  error_message TEXT,
  counts_json TEXT NOT NULL,
  created_at TEXT NOT NULL,
  completed_at TEXT NOT NULL
) STRICT;
CREATE INDEX imports_account ON imports (account_id, created_at DESC, import_id);
CREATE INDEX imports_sha256 ON imports (account_id, sha256);

-- ---------------------------------------------------------------- operational, allowed to be lost

-- An upload or import that has not ended. checkpoint_json holds the state of the turn machine.
CREATE TABLE import_runs (
  import_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  namespace TEXT NOT NULL,
  filename TEXT NOT NULL,
  object_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('uploading', 'uploaded', 'processing')),
  upload_id TEXT,
  sha256 TEXT,
  size_bytes INTEGER,
  checkpoint_json TEXT NOT NULL DEFAULT '{}',
  turn INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX import_runs_account ON import_runs (account_id, created_at);

CREATE TABLE upload_parts (
  import_id TEXT NOT NULL REFERENCES import_runs (import_id) ON DELETE CASCADE,
  part_number INTEGER NOT NULL,
  etag TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY (import_id, part_number)
) STRICT, WITHOUT ROWID;

-- What a run has to say of single items: skipped, failed or noteworthy, each with its reason.
CREATE TABLE import_findings (
  import_id TEXT NOT NULL REFERENCES import_runs (import_id) ON DELETE CASCADE,
  position TEXT NOT NULL,
  severity TEXT NOT NULL CHECK (severity IN ('note', 'skipped', 'failed')),
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  source_id TEXT,
  PRIMARY KEY (import_id, position, code)
) STRICT, WITHOUT ROWID;

-- What a run has read so far: tells a second copy of a conversation in the same export from the first.
CREATE TABLE import_items (
  import_id TEXT NOT NULL REFERENCES import_runs (import_id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL,
  PRIMARY KEY (import_id, conversation_id)
) STRICT, WITHOUT ROWID;

-- The assets that a run's messages point to, so that those without bytes can be counted.
CREATE TABLE import_asset_refs (
  import_id TEXT NOT NULL REFERENCES import_runs (import_id) ON DELETE CASCADE,
  asset_id TEXT NOT NULL,
  PRIMARY KEY (import_id, asset_id)
) STRICT, WITHOUT ROWID;

-- The outbox: a write that has begun. It is settled by the write itself or, later, by the sweeper looking at the store.
CREATE TABLE intents (
  intent_id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  conversation_ids_json TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX intents_age ON intents (created_at);

CREATE TABLE jobs (
  job_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('import', 'index')),
  account_id TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_expires_at TEXT,
  available_at TEXT NOT NULL,
  error_code TEXT,
  error_message TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_due ON jobs (status, available_at);
CREATE INDEX jobs_subject ON jobs (subject_id);

-- ---------------------------------------------------------------- derived index, rebuilt by reindexing

CREATE TABLE index_generations (
  generation TEXT PRIMARY KEY,
  status TEXT NOT NULL CHECK (status IN ('building', 'active', 'retired')),
  strategy TEXT NOT NULL,
  embedding_model TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  activated_at TEXT
) STRICT;
CREATE UNIQUE INDEX index_generations_active ON index_generations (status) WHERE status = 'active';

-- How far each conversation is indexed in a generation: pending until head_seq equals the conversation's.
CREATE TABLE index_state (
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  generation TEXT NOT NULL,
  account_id TEXT NOT NULL,
  head_seq INTEGER NOT NULL,
  revision_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('queued', 'text', 'indexed', 'failed')),
  chunk_count INTEGER NOT NULL DEFAULT 0,
  error_code TEXT,
  queued_at TEXT NOT NULL,
  indexed_at TEXT,
  PRIMARY KEY (conversation_id, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX index_state_waiting ON index_state (account_id, generation, queued_at) WHERE status <> 'indexed';

-- chunk_rowid ties a chunk to its full-text row. grams holds what a word tokenizer cannot find: overlapping bigrams of
-- scripts without spaces, and words glued to them. embedded: its vector was handed to the vector index.
CREATE TABLE chunks (
  chunk_rowid INTEGER PRIMARY KEY,
  chunk_id TEXT NOT NULL UNIQUE,
  vector_id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  generation TEXT NOT NULL,
  branch_key TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  grams TEXT NOT NULL,
  token_estimate INTEGER NOT NULL,
  created_at TEXT,
  sources_json TEXT NOT NULL,
  embedded INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX chunks_conversation ON chunks (conversation_id, generation, branch_key, ordinal);

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  title, body, grams,
  content = 'chunks', content_rowid = 'chunk_rowid',
  tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE TRIGGER chunks_fts_insert AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, title, body, grams) VALUES (new.chunk_rowid, new.title, new.body, new.grams);
END;
CREATE TRIGGER chunks_fts_delete AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, title, body, grams)
  VALUES ('delete', old.chunk_rowid, old.title, old.body, old.grams);
END;
CREATE TRIGGER chunks_fts_update AFTER UPDATE OF title, body, grams ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, title, body, grams)
  VALUES ('delete', old.chunk_rowid, old.title, old.body, old.grams);
  INSERT INTO chunks_fts (rowid, title, body, grams) VALUES (new.chunk_rowid, new.title, new.body, new.grams);
END;
