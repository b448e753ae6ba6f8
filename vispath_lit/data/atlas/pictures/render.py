"""Rasterises the drawings in parallel and drops the pictures that cannot be told apart.

Two pictures of a kind are nearly identical if no cell of their coarse copies differs by more than
`SAME`: such a pair would make a question with two answers. Of a set of look-alikes a single one of rank
0 stays (a country whose territories fly its flag); otherwise none does.
"""

from __future__ import annotations

import io
import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import resvg_py
from PIL import Image

from vispath_lit.data.atlas.geometry import SIZE
from vispath_lit.data.atlas.pictures.job import Job
from vispath_lit.progress import track

COARSE = 36
SAME = 36
"""Largest difference of a channel (0 to 255) between two nearly identical coarse copies."""
CHUNK = 64

Coarse = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Picture:
    """A reference image that stayed: the file is relative to the folder of images."""

    entity: str
    file: str
    kind: str


def render(
    jobs: Sequence[Job], folder: Path, *, workers: int | None = None
) -> tuple[list[Picture], dict[str, int]]:
    """Draws all jobs into `folder`; returns the pictures that stay and how many of each kind do not.

    Args:
        workers: processes; one a core where None. The number changes no byte.
    """
    for kind in sorted({job.kind for job in jobs}):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    chunks = [jobs[i : i + CHUNK] for i in range(0, len(jobs), CHUNK)]
    coarse: list[Coarse] = []
    for found in track(_drawn(chunks, folder, workers), "pictures", total=len(chunks)):
        coarse += found
    drop = _look_alikes(jobs, coarse)
    for row in drop:
        (folder / jobs[row].file).unlink()
    dropped = Counter(jobs[row].kind for row in drop)
    kept = [Picture(job.entity, job.file, job.kind) for row, job in enumerate(jobs) if row not in drop]
    return kept, dict(sorted(dropped.items()))


def _drawn(chunks: Sequence[Sequence[Job]], folder: Path, workers: int | None) -> Iterator[list[Coarse]]:
    processes = min(workers or os.cpu_count() or 1, len(chunks))
    if processes <= 1:
        for chunk in chunks:
            yield _draw_chunk(chunk, folder)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(_draw_chunk, chunks, [folder] * len(chunks))


def _draw_chunk(jobs: Sequence[Job], folder: Path) -> list[Coarse]:
    return [_draw(job, folder / job.file) for job in jobs]


def _draw(job: Job, path: Path) -> Coarse:
    """Writes one PNG and returns its `[COARSE, COARSE, 3]` copy."""
    image = _raster(job.svg, job.fonts)
    if job.ground:
        image = Image.alpha_composite(_ground(job.ground), image)
    image = image.convert("RGB")
    few = image.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, "PNG", optimize=False, compress_level=6)
    return np.asarray(image.resize((COARSE, COARSE), Image.Resampling.BOX))


def _raster(svg: str, fonts: tuple[str, ...] = ()) -> Image.Image:
    png = resvg_py.svg_to_bytes(
        svg_string=svg, width=SIZE, height=SIZE, skip_system_fonts=True, font_files=list(fonts)
    )
    return Image.open(io.BytesIO(png)).convert("RGBA")


@lru_cache(maxsize=4)
def _ground(svg: str) -> Image.Image:
    return _raster(svg)


def _look_alikes(jobs: Sequence[Job], coarse: Sequence[Coarse]) -> set[int]:
    """Rows to drop."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, job in enumerate(jobs):
        groups[job.kind, job.group].append(row)
    drop: set[int] = set()
    for rows in groups.values():
        for cluster in _clusters(rows, np.stack([coarse[row] for row in rows]).astype(np.int16)):
            leaders = [row for row in cluster if jobs[row].rank == 0]
            drop |= set(cluster) - (set(leaders) if len(leaders) == 1 else set())
    return drop


def _clusters(rows: list[int], copies: npt.NDArray[np.int16]) -> list[list[int]]:
    """Connected sets of two or more nearly identical pictures."""
    flat = copies.reshape(len(rows), -1)
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    for i in range(len(rows) - 1):
        same = np.flatnonzero(np.abs(flat[i + 1 :] - flat[i]).max(axis=1) <= SAME) + i + 1
        for j in same.tolist():
            parent[root(j)] = root(i)
    sets: dict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        sets[root(i)].append(row)
    return [members for members in sets.values() if len(members) > 1]
