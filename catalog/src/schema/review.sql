-- Version 2: members, submissions, jobs, decisions. Times are whole seconds since 1970.

CREATE TABLE members (
    id INTEGER PRIMARY KEY,
    thumbprint TEXT NOT NULL UNIQUE CHECK (length(thumbprint) = 43),
    public_key TEXT NOT NULL,
    pseudonym TEXT NOT NULL UNIQUE,
    joined TEXT NOT NULL
) STRICT;
CREATE TABLE member_roles (
    member INTEGER NOT NULL REFERENCES members (id),
    role TEXT NOT NULL CHECK (role IN ('creator', 'moderator', 'rater')),
    PRIMARY KEY (member, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('intake', 'preview', 'catalog_regen', 'verify')),
    subject TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done', 'failed')),
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    lease TEXT,
    lease_until INTEGER,
    result TEXT NOT NULL DEFAULT '',
    CHECK ((state = 'leased') = (lease IS NOT NULL))
) STRICT;
CREATE INDEX jobs_open ON jobs (state, due, seq) WHERE state IN ('queued', 'leased');
-- However many approvals come while one regeneration waits, it serves them all.
CREATE UNIQUE INDEX jobs_waiting_once ON jobs (kind)
    WHERE kind IN ('catalog_regen', 'verify') AND state = 'queued';

CREATE TABLE submissions (
    job TEXT PRIMARY KEY REFERENCES jobs (id),
    member INTEGER NOT NULL REFERENCES members (id),
    state TEXT NOT NULL CHECK (state IN ('received', 'rejected', 'pending_review', 'declined', 'published',
                                         'withdrawn', 'returned', 'failed')),
    stage TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    slug TEXT NOT NULL DEFAULT '',
    is_python INTEGER NOT NULL DEFAULT 0,
    report TEXT NOT NULL DEFAULT '',
    work INTEGER REFERENCES works (id),
    received INTEGER NOT NULL,
    changed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_member ON submissions (member, received);
CREATE INDEX submissions_work ON submissions (work);

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE triggers (
    event TEXT NOT NULL,
    job TEXT NOT NULL,
    PRIMARY KEY (event, job)
) STRICT, WITHOUT ROWID;
INSERT INTO triggers (event, job) VALUES
    ('work.published', 'catalog_regen'),
    ('work.withdrawn', 'catalog_regen'),
    ('work.rated', 'catalog_regen');

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    tree_before TEXT NOT NULL,
    tree_after TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE
) STRICT;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

CREATE TABLE previews (
    token TEXT PRIMARY KEY CHECK (length(token) = 32),
    work INTEGER NOT NULL REFERENCES works (id) ON DELETE CASCADE,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ratings (
    member INTEGER NOT NULL REFERENCES members (id),
    creator TEXT NOT NULL,
    slug TEXT NOT NULL,
    stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
    PRIMARY KEY (member, creator, slug)
) STRICT, WITHOUT ROWID;
CREATE INDEX ratings_work ON ratings (creator, slug);
