"""Removes personal details from a profiler output and compresses it.

The text stays as PyTorch wrote it, number formats and order included: values are replaced in the
text, and nothing is parsed and written again.
"""

import getpass
import gzip
import os
import re
import socket


class PersonalDetail(Exception):
    """A detail of this machine is left in the text."""


def clean(text):
    """Replaces the host name and the folder of the trace, and makes sure that nothing else is left."""
    text = re.sub(r'("host_name": )"[^"]*"', r'\1"host"', text)
    text = re.sub(r'("traceName": )"(?:[^"]*/)?([^"/]*)"', r'\1"/trace/\2"', text)
    for what, pattern in _details():
        found = re.search(pattern, text)
        if found:
            around = text[max(0, found.start() - 60) : found.end() + 60]
            raise PersonalDetail(f"{what} at offset {found.start()}: {around!r}")
    return text


def pack(source, target):
    """Cleans the text file source and writes it as gzip, the same bytes for the same text."""
    with open(source, encoding="utf-8", newline="") as f:
        text = clean(f.read())
    with open(target, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0) as f:
        f.write(text.encode("utf-8"))


def copy(source, target):
    """Cleans the text file source and writes it as it is."""
    with open(source, encoding="utf-8", newline="") as f:
        text = clean(f.read())
    with open(target, "w", encoding="utf-8", newline="") as f:
        f.write(text)


def _details():
    """What must not occur: names of the machine and its user as words in quotes or paths, any absolute path."""
    for what, name in (("host name", socket.gethostname()), ("host name", socket.getfqdn()), ("user name", _user())):
        if name and name != "localhost":
            yield what, rf'["/@]{re.escape(name)}["/:@.]'
    yield "path", r'"/(?!trace/)\w'
    for variable in ("HOME", "PATH", "PWD", "VIRTUAL_ENV"):
        if len(os.environ.get(variable, "")) > 1:
            yield variable, re.escape(os.environ[variable])


def _user():
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
