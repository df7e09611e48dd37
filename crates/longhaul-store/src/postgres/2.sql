-- By which conversations a session is found: a hash of its first messages, for each number of them.
CREATE TABLE longhaul.prefix (
    hash bytea PRIMARY KEY,
    session bigint NOT NULL,
    messages integer NOT NULL       -- how many they are
);
CREATE INDEX prefix_session ON longhaul.prefix (session);
