-- Sign-in by mail, sessions and personal access tokens. Operational state: losing it signs people out and no more.
-- Nothing here is a secret in clear: ids, links, codes and tokens are kept as SHA-256. Times are epoch milliseconds.

CREATE TABLE sessions (
  session_hash TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  csrf TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_account ON sessions (account_id);
CREATE INDEX sessions_expiry ON sessions (expires_ms);

-- One open challenge an address: a newer one takes the place of the older.
CREATE TABLE sign_in_challenges (
  address_hash TEXT PRIMARY KEY,
  address TEXT NOT NULL,
  link_hash TEXT NOT NULL UNIQUE,
  browser_hash TEXT NOT NULL,
  code_hash TEXT NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  return_to TEXT NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_challenges_browser ON sign_in_challenges (browser_hash);
CREATE INDEX sign_in_challenges_expiry ON sign_in_challenges (expires_ms);

-- Requests counted in a window: for an address, for a network, and in all.
CREATE TABLE sign_in_counts (
  subject TEXT NOT NULL,
  window_start_ms INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  PRIMARY KEY (subject, window_start_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_counts_expiry ON sign_in_counts (expires_ms);

CREATE TABLE personal_tokens (
  token_hash TEXT PRIMARY KEY,
  token_id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  used_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX personal_tokens_of_account ON personal_tokens (account_id, created_ms);
