"""What a split is made of, so that a person sees at once what it can and cannot test."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from vispath_lit.data.bench.select import sequence_keys
from vispath_lit.data.bench.walks import Walks
from vispath_lit.types import Question


def yields(walks: Sequence[Walks]) -> dict[str, dict[str, int]]:
    """By number of hops: gold paths, and how many starts, relation sequences and answers they have."""
    return {
        str(part.hops): {
            "paths": len(part),
            "starts": len(np.unique(part.entities[:, 0])),
            "sequences": len(np.unique(sequence_keys(part))),
            "answers": len(np.unique(part.entities[:, -1])),
        }
        for part in walks
    }


def split_statistics(questions: Sequence[Question]) -> dict[str, object]:
    """Counts and shares of one split."""
    n = len(questions)
    if not n:
        return {"questions": 0}
    answers = Counter(q.answer_ids[0] for q in questions)
    sequences = Counter(tuple(relation for relation, _ in q.gold_paths[0]) for q in questions)
    last = Counter(sequence[-1] for sequence in sequences.elements())
    tags = Counter(tag for q in questions for tag in q.tags)
    kinds = {tag.removeprefix("image:"): c for tag, c in sorted(tags.items()) if tag.startswith("image:")}
    cues = {tag: c for tag, c in sorted(tags.items()) if tag.startswith("cue")}
    top, top_count = min(answers.items(), key=lambda item: (-item[1], item[0]))
    return {
        "questions": n,
        "hops": {str(h): c for h, c in sorted(Counter(q.hops for q in questions).items(), key=str)},
        "image_kinds": {kind: round(count / n, 4) for kind, count in kinds.items()},
        "starts": len({q.topic_entity for q in questions}),
        "relations": len({relation for sequence in sequences for relation in sequence}),
        "relation_sequences": len(sequences),
        "last_relations": dict(sorted(last.items(), key=lambda item: (-item[1], item[0]))),
        "answers": len(answers),
        "top_answer": top,
        "top_answer_share": round(top_count / n, 4),
        "question_words": round(float(np.mean([len(q.text.split()) for q in questions])), 2),
        "answer_words": round(float(np.mean([len(q.answers[0].split()) for q in questions])), 2),
        "distinct_texts": len({q.text for q in questions}),
        "nearer_by_inverse": round(tags["nearer_by_inverse"] / n, 4),
        "new_form": round(tags["new_form"] / n, 4),
        "cues": cues,
        "cue_pairs": len({q.meta["pair"] for q in questions if "pair" in q.meta}),
    }


def fingerprint(folder: Path) -> str:
    """A hash of every file of the question folder, names and bytes."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        total.update(path.relative_to(folder).as_posix().encode())
        total.update(hashlib.blake2b(path.read_bytes(), digest_size=16).digest())
    return total.hexdigest()


def statistics_table(splits: Mapping[str, Mapping[str, object]]) -> Table:
    """The splits side by side."""
    table = Table(title="Atlas questions")
    table.add_column("")
    for split in splits:
        table.add_column(split, justify="right")
    rows = [
        "questions", "hops", "starts", "relations", "relation_sequences", "answers", "top_answer_share",
        "question_words", "answer_words", "nearer_by_inverse", "new_form", "cue_pairs",
    ]  # fmt: skip
    for row in rows:
        table.add_row(row.replace("_", " "), *(_cell(found.get(row, "")) for found in splits.values()))
    return table


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}:{v}" for k, v in value.items())
    return str(value)
