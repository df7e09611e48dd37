-- One beginning may be that of several sessions: forks, and the same words said to another model.
CREATE TABLE prefix_of_session (
    hash BLOB NOT NULL,
    session INTEGER NOT NULL,
    messages INTEGER NOT NULL,      -- how many they are
    PRIMARY KEY (hash, session)
) STRICT, WITHOUT ROWID;
INSERT INTO prefix_of_session (hash, session, messages) SELECT hash, session, messages FROM prefix;
DROP TABLE prefix;
ALTER TABLE prefix_of_session RENAME TO prefix;
CREATE INDEX prefix_session ON prefix (session);

-- A session of which nothing that was said is kept.
ALTER TABLE session ADD COLUMN without_content INTEGER NOT NULL DEFAULT 0;
