-- Messages that a queue gave up on. Operational state: it may be lost.

CREATE TABLE dead_letters (
  message_id TEXT PRIMARY KEY,
  job_id TEXT,
  body TEXT NOT NULL,
  recorded_at TEXT NOT NULL
) STRICT;

CREATE INDEX dead_letters_by_job ON dead_letters (job_id);
