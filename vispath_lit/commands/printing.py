"""What commands print on stdout: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json

from rich.console import Console
from rich.markup import escape

from vispath_lit.progress import printable

out = Console()


def print_json(found: object) -> None:
    """One line of JSON."""
    print(json.dumps(found, ensure_ascii=False))


def plain(text: str) -> str:
    """Text from the data on one line, its markup and control characters made harmless."""
    return escape(printable(text).replace("\n", " "))
