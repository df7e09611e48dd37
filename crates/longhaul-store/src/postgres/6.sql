-- Forms of edits that an upstream refused, where it took the same conversation in another one.
CREATE TABLE longhaul.upstream_refusal (
    upstream text NOT NULL,         -- its address
    model text NOT NULL,
    form text NOT NULL,             -- 'system', 'user' or 'tool'
    says text NOT NULL,             -- the upstream's sentence
    learnt bigint NOT NULL,         -- when, in microseconds: it is forgotten after a while
    PRIMARY KEY (upstream, model, form)
);
