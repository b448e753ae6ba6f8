"""What a benchmark is made of: the columns of the paper's Table I, and the lengths of its Figure 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from vispath_lit.progress import printable
from vispath_lit.types import Question


def statistics(questions: Sequence[Question]) -> dict[str, Any]:
    """Counts of one split or of all; averages are in words, as in Table I."""
    n = len(questions)
    if not n:
        return {"questions": 0}
    lengths = [len(q.text.split()) for q in questions]
    relations = Counter(relation for q in questions for relation, _ in q.gold_paths[0])
    last = Counter(q.gold_paths[0][-1][0] for q in questions)
    answers = Counter(q.answer_ids[0] for q in questions)
    sequences = Counter(tuple(relation for relation, _ in q.gold_paths[0]) for q in questions)
    tags = Counter(tag for q in questions for tag in q.tags)
    kinds = {tag.removeprefix("image:"): c for tag, c in sorted(tags.items()) if tag.startswith("image:")}
    return {
        "questions": n,
        "hops": {str(h): c for h, c in sorted(Counter(q.hops or 0 for q in questions).items())},
        "question_words": round(float(np.mean(lengths)), 2),
        "relations": len(relations),
        "answer_words": round(float(np.mean([len(q.answers[0].split()) for q in questions])), 2),
        "image_kinds": kinds,
        "starts": len({q.topic_entity for q in questions}),
        "answers": len(answers),
        "relation_sequences": len(sequences),
        "top_answer_share": round(max(answers.values()) / n, 4),
        "top_last_relation_share": round(max(last.values()) / n, 4),
        "own_picture_in_graph": tags["reference_picture"],
        "nearer_by_inverse": tags["nearer_by_inverse"],
        "question_lengths": {str(words): c for words, c in sorted(Counter(lengths).items())},
        "last_relations": dict(sorted(last.items(), key=lambda item: (-item[1], item[0]))),
    }


def table_one(splits: Mapping[str, Mapping[str, Any]]) -> Table:
    """The columns of Table I, a line a split."""
    hops = sorted({int(h) for found in splits.values() for h in found.get("hops", {})})
    table = Table(title="questions")
    columns = ["", "#questions", *(f"{h}-hop" for h in hops), "avg. |Q|", "#relations", "avg. |A|", "images"]
    for column in columns:
        table.add_column(column, justify="left" if column in ("", "images") else "right")
    for split, found in splits.items():
        kinds = found.get("image_kinds", {})
        shown = ", ".join(kinds) if len(kinds) < 4 else f"{len(kinds)} kinds"
        cells = [str(found.get("hops", {}).get(str(h), "–")) for h in hops]
        rest = [str(found.get(key, "–")) for key in ("question_words", "relations", "answer_words")]
        table.add_row(split, f"{found['questions']:,}", *cells, *rest, escape(printable(shown)))
    return table
