"""Composed texts make a shortlist, exact texts decide on it."""

from __future__ import annotations

from pathlib import Path

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.mapped_table import Kept
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.distill import DistillSettings
from vispath_lit.models.texts.exact import Exact
from vispath_lit.protocols import TextEncoder, TextStage


class TwoStage:
    """A provider of two stages.

    Args:
        keep: times the beam width that composed texts pass on to exact ones, as long as `texts` allows.
        texts: texts that a question embeds at most over all of its hops, itself and its chains included and
            labels left out; None for no bound. Near it the shortlists of edges narrow, but never below the
            beam width: where even that takes more, more is embedded.
        composer, settings, whole_labels, kept: see `Composed`.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        cache_dir: Path | str,
        keep: int = 4,
        texts: int | None = 900,
        composer: str = "auto",
        settings: DistillSettings | None = None,
        whole_labels: bool = False,
        kept: Kept = "float16",
    ) -> None:
        if keep < 1:
            raise ConfigError(f"two-stage keep is {keep}; expected at least 1")
        if texts is not None and texts < 1:
            raise ConfigError(f"two-stage texts is {texts}; expected at least 1, or null for no bound")
        self.shortlist = Composed(
            graph,
            text_encoder,
            cache_dir,
            composer,
            keep,
            settings=settings,
            whole_labels=whole_labels,
            kept=kept,
            texts=texts,
        )
        self.exact = Exact(graph, text_encoder)

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self.shortlist, self.exact)
