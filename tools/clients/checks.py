"""Counts what was expected and what was not."""

import os
import sys

passed = 0
failed = 0


def check(what, actual, expected=True):
    global passed, failed
    if actual == expected:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}: {actual!r} is not {expected!r}", file=sys.stderr)


def end(client):
    print(f"{client}: {passed} passed, {failed} failed", flush=True)
    # Threads of the clients that listen do not end by themselves.
    os._exit(1 if failed else 0)
