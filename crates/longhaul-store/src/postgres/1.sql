-- Which form the tables have: one row.
CREATE TABLE longhaul.form (
    program text PRIMARY KEY,       -- ours
    form bigint NOT NULL
);
INSERT INTO longhaul.form VALUES ('longhaul', 0);

-- A session. Its number is never given to another one.
CREATE TABLE longhaul.session (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,        -- version 7
    parent uuid,                    -- the session that it was forked from
    tenant text NOT NULL,           -- whose session it is
    agent text NOT NULL,
    project text NOT NULL,
    title text NOT NULL,
    model text NOT NULL,
    created bigint NOT NULL,        -- microseconds since 1970
    updated bigint NOT NULL,
    entries integer NOT NULL,       -- where the journal ends
    messages bigint NOT NULL,
    calls bigint NOT NULL,
    bytes bigint NOT NULL           -- all entries as JSON
);
CREATE INDEX session_updated ON longhaul.session (updated, n);
CREATE INDEX session_tenant ON longhaul.session (tenant, updated, n);

-- What entries hold, shared between sessions: messages, long entries, texts of edits. Numbers are given in
-- the order in which entries hold the content, and never again.
CREATE SEQUENCE longhaul.content_number;
CREATE TABLE longhaul.content (
    id bigint PRIMARY KEY,
    hash bytea,                     -- the first half of blake3; short messages have none
    packed bytea NOT NULL           -- zstd with a dictionary, behind a byte that says which
);
CREATE UNIQUE INDEX content_hash ON longhaul.content (hash) WHERE hash IS NOT NULL;

-- The journals: each entry is here or in the content.
CREATE TABLE longhaul.entry (
    session bigint NOT NULL,
    seq integer NOT NULL,           -- number of the entry in its journal
    kind smallint NOT NULL,         -- 0 other, 1 message, 2 request, 3 names the model
    bytes integer NOT NULL,         -- its length as JSON
    packed bytea,
    content bigint,
    apart bigint,                   -- the text of its edit
    PRIMARY KEY (session, seq)
);
CREATE INDEX entry_content ON longhaul.entry (content, session, seq) WHERE content IS NOT NULL;
CREATE INDEX entry_apart ON longhaul.entry (apart, session) WHERE apart IS NOT NULL;

-- Sizes of messages, which need not be counted again.
CREATE TABLE longhaul.sizes (
    session bigint PRIMARY KEY,
    messages bigint NOT NULL,       -- how many there were
    packed bytea NOT NULL
);

-- What was learnt of how a model counts.
CREATE TABLE longhaul.learnt (
    model text PRIMARY KEY,
    calibration text NOT NULL       -- JSON
);

-- Which content has which words. The words are made by the program: see words.rs.
CREATE TABLE longhaul.words (
    content bigint PRIMARY KEY,
    words tsvector NOT NULL
);
CREATE INDEX words_words ON longhaul.words USING gin (words);

-- Content that was not looked at for words. Transactions do not end in the order of numbers, so one number
-- cannot say how far the content was looked at.
CREATE TABLE longhaul.waiting (
    content bigint PRIMARY KEY
);

-- What is packed cannot be made smaller again.
ALTER TABLE longhaul.content ALTER COLUMN packed SET STORAGE EXTERNAL;
ALTER TABLE longhaul.entry ALTER COLUMN packed SET STORAGE EXTERNAL;
ALTER TABLE longhaul.sizes ALTER COLUMN packed SET STORAGE EXTERNAL;
