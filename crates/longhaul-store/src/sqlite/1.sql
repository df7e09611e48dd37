-- A session. Its number is never given to another one.
CREATE TABLE session (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,        -- UUID, version 7
    parent BLOB,                    -- the session that it was forked from
    agent TEXT NOT NULL,
    project TEXT NOT NULL,
    title TEXT NOT NULL,
    model TEXT NOT NULL,
    created INTEGER NOT NULL,       -- microseconds since 1970
    updated INTEGER NOT NULL,
    entries INTEGER NOT NULL,       -- where the journal ends
    messages INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    bytes INTEGER NOT NULL          -- all entries as JSON
) STRICT;
CREATE INDEX session_updated ON session (updated);

-- What entries hold, shared between sessions: messages, long entries, texts of edits. A number is never
-- given again: what is behind the newest that was indexed is new.
CREATE TABLE content (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB,                      -- the first half of blake3; short messages have none
    packed BLOB NOT NULL            -- zstd with a dictionary, behind a byte that says which
) STRICT;
CREATE UNIQUE INDEX content_hash ON content (hash) WHERE hash IS NOT NULL;

-- The journals: each entry is here or in the content.
CREATE TABLE entry (
    at INTEGER PRIMARY KEY,         -- number of the session << 32 | number of the entry
    kind INTEGER NOT NULL,          -- 0 other, 1 message, 2 request, 3 names the model
    bytes INTEGER NOT NULL,         -- its length as JSON
    packed BLOB,
    content INTEGER,
    apart INTEGER                   -- the text of its edit
) STRICT;
CREATE INDEX entry_content ON entry (content) WHERE content IS NOT NULL;
CREATE INDEX entry_apart ON entry (apart) WHERE apart IS NOT NULL;

-- Sizes of messages, which need not be counted again.
CREATE TABLE sizes (
    session INTEGER PRIMARY KEY,
    messages INTEGER NOT NULL,      -- how many there were
    packed BLOB NOT NULL
) STRICT;

-- What was learnt of how a model counts.
CREATE TABLE learnt (
    model TEXT PRIMARY KEY,
    calibration TEXT NOT NULL       -- JSON
) STRICT, WITHOUT ROWID;

-- Which content has which words. The words are made by the program: see words.rs.
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- How far the content was looked at for words: one row.
CREATE TABLE indexed (
    upto INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (0);
