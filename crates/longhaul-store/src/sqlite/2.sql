-- Whose session it is, where one store serves many.
ALTER TABLE session ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
CREATE INDEX session_tenant ON session (tenant, updated);
