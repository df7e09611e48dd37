-- Upstreams that count the answer that a request allows with its prompt.
CREATE TABLE upstream_limit (
    upstream TEXT NOT NULL,         -- its address
    model TEXT NOT NULL,
    window INTEGER NOT NULL,        -- tokens, in which both must fit
    PRIMARY KEY (upstream, model)
) STRICT, WITHOUT ROWID;
