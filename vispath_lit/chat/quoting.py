"""Text of unknown origin as data: whatever a label or a question says, it stays inside a JSON string."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

MAX_TEXT = 2_000  # characters of one quoted text
# What some models take for the end of a turn or the begin of another: <|im_end|>, </s>, <sop>, [INST],
# <<SYS>>, GLM's [gMASK] and [sMASK], EXAONE's [|user|].
_MARKS = re.compile(r"[<>]|\[(?=/?[A-Z_]+\]|[gs]MASK\]|\|)")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def quote(data: Mapping[str, object]) -> str:
    """The data as one JSON document on one line.

    Strings are cut at `MAX_TEXT` characters, control and direction marks in them become blanks, and the marks
    that chat templates are made of are written as JSON escapes: no text can end its turn or begin another.
    """
    return _without_marks(json.dumps(_clean(data), ensure_ascii=False))


def escaped(text: str) -> str:
    """A text that is a turn of its own, cut, cleaned and without marks as a document's are.

    What is JSON stays the same JSON, if it is not cut.
    """
    return _without_marks(_plain(text))


def _without_marks(text: str) -> str:
    return _MARKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(text: str) -> str:
    plain = _CONTROLS.sub(" ", text.encode("utf8", "replace").decode("utf8"))
    return plain if len(plain) <= MAX_TEXT else plain[: MAX_TEXT - 1] + "…"


def _clean(data: object) -> object:
    if isinstance(data, str):
        return _plain(data)
    if isinstance(data, Mapping):
        return {key: _clean(value) for key, value in data.items()}
    if isinstance(data, Sequence):
        return [_clean(value) for value in data]
    return data
