-- Forms of edits that an upstream refused, where it took the same conversation in another one.
CREATE TABLE upstream_refusal (
    upstream TEXT NOT NULL,         -- its address
    model TEXT NOT NULL,
    form TEXT NOT NULL,             -- 'system', 'user' or 'tool'
    says TEXT NOT NULL,             -- the upstream's sentence
    learnt INTEGER NOT NULL,        -- when, in microseconds: it is forgotten after a while
    PRIMARY KEY (upstream, model, form)
) STRICT, WITHOUT ROWID;
