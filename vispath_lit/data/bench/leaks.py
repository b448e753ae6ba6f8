"""Whether a question gives away what it asks for, or where it starts."""

from __future__ import annotations

import re

from vispath_lit.kg.store import KnowledgeGraph

_BLANKLESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def tells(graph: KnowledgeGraph, text: str, entity: int) -> bool:
    """Whether a name of the entity stands in the text, in any case.

    As whole words, where its script parts words by blanks; a name of one letter tells nothing.
    """
    names = (graph.label(entity), *graph.aliases(entity))
    forms = [
        re.escape(name) if _BLANKLESS.search(name) else rf"(?<!\w){re.escape(name)}(?!\w)"
        for name in names
        if len(name) > 1
    ]
    return bool(forms) and re.search("|".join(forms), text, re.IGNORECASE) is not None
