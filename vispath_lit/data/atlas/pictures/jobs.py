"""Every picture that Atlas draws, as a list of drawings still to be rasterised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

from vispath_lit.data.atlas.pictures import locators, writing
from vispath_lit.data.atlas.pictures.job import Job
from vispath_lit.data.atlas.sheet import Entity

# Each is told which entities exist, so that it can skip work; a job for another entity is left out here.
MAKERS: tuple[Callable[[Collection[str]], Iterator[Job]], ...] = (
    writing.flags,
    locators.outlines,
    locators.states,
    locators.counties,
    locators.cities,
    locators.airports,
    locators.volcano_marks,
    writing.language_names,
    writing.script_samples,
    writing.currency_signs,
    writing.element_cells,
)


def picture_jobs(entities: Iterable[Entity]) -> list[Job]:
    """The pictures of the entities that exist, by kind, group (so that they share a ground) and entity."""
    ids = {entity.id for entity in entities}
    jobs = [job for job in chain.from_iterable(maker(ids) for maker in MAKERS) if job.entity in ids]
    return sorted(jobs, key=lambda job: (job.kind, job.group, job.entity))
