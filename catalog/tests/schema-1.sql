-- A catalogue of schema 1, as it was written before there were members.
    CREATE TABLE works (
        id INTEGER PRIMARY KEY,
        creator TEXT NOT NULL,
        slug TEXT NOT NULL,
        version INTEGER NOT NULL,
        status TEXT NOT NULL
            CHECK (status IN ('pending_review', 'published', 'replaced', 'withdrawn', 'rejected')),
        manifest TEXT NOT NULL,
        released TEXT NOT NULL,
        updated TEXT NOT NULL,
        UNIQUE (creator, slug, version)
    ) STRICT;
    CREATE UNIQUE INDEX works_published ON works (creator, slug) WHERE status = 'published';
    CREATE TABLE work_files (
        work INTEGER NOT NULL REFERENCES works (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('payload', 'python', 'sidecar', 'cover')),
        sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
        bytes INTEGER NOT NULL CHECK (bytes >= 0),
        PRIMARY KEY (work, name)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;
    INSERT INTO works VALUES (1, 'moth', 'hitch', 1, 'published', '{"id": "hitch"}', '2026-11-01', '2026-11-01');
    INSERT INTO work_files VALUES (1, 'index.html', 'payload',
        'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', 3);
