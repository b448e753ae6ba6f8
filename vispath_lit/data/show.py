"""One self-contained page of random questions with picture and gold path, for a person to judge."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from vispath_lit.errors import DataError
from vispath_lit.kg.images import check_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import GoldPath, Question
from vispath_lit.whole import whole_file

MOST_ANSWERS = 8
MOST_PATHS = 3

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #222; }
article { display: grid; grid-template-columns: 13rem 1fr; gap: 1.2rem; padding: 1.2rem 0; }
article { border-top: 1px solid #ccc; }
img { width: 13rem; height: 13rem; object-fit: contain; border: 1px solid #ddd; background: #fff; }
h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
.none { width: 13rem; color: #888; }
.path { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem; margin: .5rem 0; }
.node { border: 1.5px solid #357; border-radius: .5rem; padding: .15rem .55rem; background: #eef4fb; }
.node.end { border-color: #171; background: #eaf7ea; font-weight: 600; }
.node small { color: #667; display: block; font-weight: 400; }
.edge { color: #555; font-size: .88rem; }
.tag { display: inline-block; font-size: .78rem; background: #eee; border-radius: .7rem; }
.tag { padding: .05rem .6rem; margin-right: .25rem; }
.id { color: #888; font-size: .8rem; }
"""


def show(
    questions: Sequence[Question], graph: KnowledgeGraph, out_html: Path, *, n: int = 30, seed: int = 0
) -> None:
    """Writes the page; the same questions and seed give the same page.

    Args:
        questions: where the `n` shown ones are drawn from.
        graph: the store that their gold paths walk.
        out_html: replaced where it exists.

    Raises:
        DataError: `n` below 1, no question to show, or a picture that cannot be read.
    """
    if n < 1 or not questions:
        raise DataError(f"{n} of {len(questions)} questions to show; expected at least 1 of at least 1")
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(questions))[:n])
    articles = "\n".join(_article(questions[row], graph) for row in rows.tolist())
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Questions</title>'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>{len(rows)} of {len(questions)} questions</h1>\n"
        f"{articles}\n</body></html>\n"
    )
    with whole_file(out_html) as partial:
        partial.write_text(page, encoding="utf-8")


def _article(question: Question, graph: KnowledgeGraph) -> str:
    answers = ", ".join(escape(answer) for answer in question.answers[:MOST_ANSWERS]) or "none given"
    more = len(question.answers) - MOST_ANSWERS
    paths = "".join(_path(question, path, graph) for path in question.gold_paths[:MOST_PATHS])
    hidden = len(question.gold_paths) - MOST_PATHS
    tags = "".join(f'<span class="tag">{escape(tag)}</span>' for tag in question.tags)
    hops = "" if question.hops is None else f"{question.hops} hops"
    return (
        f"<article>{_picture(question)}<div><h2>{escape(question.text)}</h2>"
        f"<div>Answer: <b>{answers}</b>{f' and {more} more names' if more > 0 else ''}</div>{paths}"
        f"{f'<div>and {hidden} more paths</div>' if hidden > 0 else ''}<div>{tags}</div>"
        f'<div class="id">{escape(question.id)} {hops} {escape(question.split or "")}</div></div></article>'
    )


def _picture(question: Question) -> str:
    if question.image is None:
        return '<div class="none">no picture</div>'
    check_image(question.image)  # A page must not carry away whatever file a question names.
    try:
        data = base64.b64encode(question.image.read_bytes()).decode("ascii")
    except OSError as error:
        raise DataError(
            f"question {question.id}: the picture {question.image} cannot be read ({error}); restore the file"
        ) from error
    kind = mimetypes.guess_type(question.image.name)[0] or "image/jpeg"
    return f'<img alt="" src="data:{escape(kind)};base64,{data}">'


def _path(question: Question, path: GoldPath, graph: KnowledgeGraph) -> str:
    parts = []
    if question.topic_entity is not None:
        parts.append(_node(graph, question.topic_entity, last=False))
    for at, (relation, entity) in enumerate(path):
        label = escape(graph.relation_label(graph.relation_index(relation)))
        parts.append(f'<span class="edge">— {label} →</span>')
        parts.append(_node(graph, entity, last=at == len(path) - 1))
    return f'<div class="path">{"".join(parts)}</div>'


def _node(graph: KnowledgeGraph, entity: str, *, last: bool) -> str:
    index = graph.entity_index(entity)
    name, type_ = escape(graph.label(index)), escape(graph.type_of(index))
    return f'<span class="node{" end" if last else ""}">{name}<small>{type_}</small></span>'
