"""Draws the pictures of questions: views of reference images, some with a visual cue on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from PIL import Image, ImageDraw

from vispath_lit.data.atlas.questions.views import WHITE, ViewRanges, view

PAD = 0.16
"""Room around a picture with a cue, as a share of its side, so that no crop can cut the cue off."""

ARROW = (40, 40, 40)
EDGE = (120, 120, 120)
CHUNK = 64


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow across an outline: its middle in pixels of the reference, and its bearing in degrees."""

    anchor: tuple[float, float]
    bearing: float


@dataclass(frozen=True, slots=True)
class Strip:
    """Colours side by side under the picture, in an order that says nothing about the flag."""

    colours: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One picture to draw."""

    reference: str
    out: str
    seed: int
    cue: Arrow | Strip | None = None


def draw(tasks: Sequence[Task], ranges: ViewRanges, workers: int) -> None:
    """Writes every picture; each depends on its own task alone, so the number of workers changes no byte."""
    chunks = [tasks[at : at + CHUNK] for at in range(0, len(tasks), CHUNK)]
    job = partial(_draw_chunk, ranges=ranges)
    if workers <= 1 or len(chunks) < 2:
        for chunk in chunks:
            job(chunk)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        _finish(pool.map(job, chunks))


def _finish(results: Iterable[None]) -> None:
    for _ in results:
        pass


def _draw_chunk(tasks: Sequence[Task], ranges: ViewRanges) -> None:
    for task in tasks:
        Path(task.out).write_bytes(render(task, ranges))


def render(task: Task, ranges: ViewRanges) -> bytes:
    """The JPEG bytes of one picture."""
    with Image.open(task.reference) as file:
        file.load()
        image: Image.Image = file
    if isinstance(task.cue, Arrow):
        image = with_arrow(image, task.cue)
    elif isinstance(task.cue, Strip):
        image = with_strip(image, task.cue)
    return view(image, task.seed, ranges, cue=task.cue is not None)


def with_arrow(image: Image.Image, arrow: Arrow) -> Image.Image:
    """The picture on a wider white ground with the arrow across the border."""
    side = max(image.size)
    pad = round(PAD * side)
    canvas = _on_white(image, pad, pad)
    length, width = 0.13 * side, max(4, round(0.022 * side))
    east, south = math.sin(math.radians(arrow.bearing)), -math.cos(math.radians(arrow.bearing))
    x, y = arrow.anchor[0] + pad, arrow.anchor[1] + pad
    tip = (x + east * length, y + south * length)
    neck = (x + east * length * 0.45, y + south * length * 0.45)
    tail = (x - east * length, y - south * length)
    half = 0.045 * side
    head = [
        tip,
        (neck[0] - south * half, neck[1] + east * half),
        (neck[0] + south * half, neck[1] - east * half),
    ]
    pen = ImageDraw.Draw(canvas)
    pen.line([tail, neck], fill=ARROW, width=width)
    pen.polygon(head, fill=ARROW)
    return canvas


def with_strip(image: Image.Image, strip: Strip) -> Image.Image:
    """The picture on a wider white ground with the colour strip below it."""
    side = max(image.size)
    pad, height = round(PAD * side), round(0.2 * side)
    canvas = _on_white(image, pad, pad + height + round(0.06 * side))
    top = pad + image.height + round(0.06 * side)
    width = image.width / len(strip.colours)
    pen = ImageDraw.Draw(canvas)
    for i, colour in enumerate(strip.colours):
        box = (round(pad + i * width), top, round(pad + (i + 1) * width), top + height)
        pen.rectangle(box, fill=colour, outline=EDGE, width=2)
    return canvas


def _on_white(image: Image.Image, pad: int, below: int) -> Image.Image:
    canvas = Image.new("RGB", (image.width + 2 * pad, image.height + pad + below), WHITE)
    mask = image.getchannel("A") if image.mode == "RGBA" else None
    canvas.paste(image.convert("RGB") if mask is None else image, (pad, pad), mask)
    return canvas
