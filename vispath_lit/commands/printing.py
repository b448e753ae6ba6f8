"""What commands print on stdout: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.markup import escape

from vispath_lit.progress import printable

out = Console()


def print_json(found: object) -> None:
    """One line of JSON; escaped where the output's encoding cannot hold its characters."""
    text = json.dumps(found, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf8")
    except UnicodeEncodeError:
        text = json.dumps(found)
    print(text)


def readable(text: str) -> str:
    """A user's text, without bytes that are no UTF-8, which a terminal hands on as half characters."""
    return text.encode("utf8", "replace").decode("utf8")


def plain(text: str) -> str:
    """Text from the data on one line, its markup and control characters made harmless."""
    return escape(printable(text).replace("\n", " "))
