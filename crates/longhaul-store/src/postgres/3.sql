-- One beginning may be that of several sessions: forks, and the same words said to another model.
ALTER TABLE longhaul.prefix DROP CONSTRAINT prefix_pkey;
ALTER TABLE longhaul.prefix ADD PRIMARY KEY (hash, session);

-- A session of which nothing that was said is kept.
ALTER TABLE longhaul.session ADD COLUMN without_content boolean NOT NULL DEFAULT false;
