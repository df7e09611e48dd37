-- The originals that entries name: a recall finds the sessions that can give one back by its handle.
CREATE TABLE original (
    tenant TEXT NOT NULL,
    handle BLOB NOT NULL,
    at INTEGER NOT NULL,            -- the entry, as in entry.at
    PRIMARY KEY (tenant, handle, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX original_at ON original (at);

-- How many entries of a session were read for the originals that they name. An older version did not do so.
ALTER TABLE session ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_unlisted ON session (n) WHERE listed < entries;
