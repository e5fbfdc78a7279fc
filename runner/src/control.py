"""Runs one attack outside the sandbox, twice in one process, and prints what became of it as its last line."""

import json
import os
import sys


def main(source, host):
    # Where it may, a control goes before other work, so that a busy machine does not spoil what it measures: a session
    # of its own, and that first among all. The rest is for a child, which does not lead a session.
    os.setsid()
    try:
        with open("/proc/self/autogroup", "w") as file:
            file.write("-20")
    except OSError:
        pass
    inner = os.fork()
    if inner:
        os.waitpid(inner, 0)
        return
    with open("/proc/self/uid_map") as file:
        rootless = file.read().split()[1] != "0"
    host_secret = host["token"]
    space, kept = {}, []
    exec(compile(source, "attack.py", "exec"), space)
    why = ""
    for nonce in ("first", "second"):
        kept.append(dict(host, nonce=nonce))
        try:
            if space["run"](kept[-1]):
                print("\ntrue", flush=True)
                return
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if rootless and getattr(error, "errno", None) in (1, 13):
                why = "needs root"
    errnos = space.get("ERRNOS")
    if errnos and all(number == 38 for number in errnos):
        why = "absent"
    elif errnos and rootless:
        why = "needs root"
    print("\n" + (why or "it returned nothing"), flush=True)
    assert host_secret


main(sys.argv[1], json.loads(sys.argv[2]))
