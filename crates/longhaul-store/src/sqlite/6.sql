-- When the upstream showed its limit, in microseconds: it is forgotten after a while. One from before is old.
ALTER TABLE upstream_limit ADD COLUMN learnt INTEGER NOT NULL DEFAULT 0;
