"""bandit in a zygote: loaded once from an environment of its own, asked once by each child.

Loaded by engine.rs in the mode that lints. What is asked is bandit's own command line, so that its answer is the one
that a creator gets from the same command; only the streams are others. It runs nothing that was submitted.
"""

import importlib.metadata
import io
import os
import sys
import tempfile


class Paper(io.StringIO):
    """A stream that can still be read after bandit has closed it."""

    name = "<stdout>"

    def close(self):
        pass


class Source:
    """Standard input whose descriptor its reader may close."""

    def __init__(self, file):
        self.file = file

    def fileno(self):
        return os.dup(self.file.fileno())


def load(folder, version):
    """Imports bandit from `folder`, which must hold that release."""
    sys.path.append(folder)
    found = importlib.metadata.version("bandit")
    if found != version:
        raise ImportError(f"bandit {found} is installed in {folder}, and only {version} counts")
    from bandit.cli import main

    return main.main


def lint(main, arguments, source):
    """What `bandit ARGUMENTS` prints about a source on its standard input. Anything but a complete answer raises."""
    out = Paper()
    # bandit reads from a descriptor; in a child this file lies in its own /tmp.
    with tempfile.TemporaryFile() as file:
        file.write(source)
        file.seek(0)
        sys.argv, sys.stdin, sys.stdout, sys.stderr = ["bandit", *arguments], Source(file), out, Paper()
        try:
            main()
        except SystemExit as end:
            if end.code not in (0, 1):
                raise RuntimeError(f"bandit ended with exit code {end.code}") from None
        finally:
            sys.stdin, sys.stdout, sys.stderr = None, sys.__stdout__, sys.__stderr__
    return out.getvalue().encode()
