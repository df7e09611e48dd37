-- By which conversations a session is found: a hash of its first messages, for each number of them.
CREATE TABLE prefix (
    hash BLOB PRIMARY KEY,
    session INTEGER NOT NULL,
    messages INTEGER NOT NULL       -- how many they are
) STRICT, WITHOUT ROWID;
CREATE INDEX prefix_session ON prefix (session);
