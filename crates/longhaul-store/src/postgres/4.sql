-- Upstreams that count the answer that a request allows with its prompt.
CREATE TABLE longhaul.upstream_limit (
    upstream text NOT NULL,         -- its address
    model text NOT NULL,
    tokens bigint NOT NULL,         -- in which both must fit
    PRIMARY KEY (upstream, model)
);
