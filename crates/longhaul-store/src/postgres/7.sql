-- The originals that entries name: a recall finds the sessions that can give one back by its handle.
CREATE TABLE longhaul.original (
    tenant text COLLATE "C" NOT NULL,
    handle bytea NOT NULL,
    session bigint NOT NULL,
    seq integer NOT NULL,           -- the entry, as in entry.seq
    PRIMARY KEY (tenant, handle, session, seq)
);
CREATE INDEX original_session ON longhaul.original (session, seq);

-- How many entries of a session were read for the originals that they name. An older version did not do so.
ALTER TABLE longhaul.session ADD COLUMN listed integer NOT NULL DEFAULT 0;
CREATE INDEX session_unlisted ON longhaul.session (n DESC) WHERE listed < entries;
