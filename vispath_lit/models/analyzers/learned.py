"""The depth of a question learned: another analyzer's distribution times a correction from the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.models.frozen import frozen, hide_words
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import QuestionAnalyzer, TextEncoder
from vispath_lit.types import Analysis, Query

SMALLEST = 1e-6  # probability below which a depth of the base counts as this


class LearnedDepthAnalyzer(nn.Module):
    """The learned `QuestionAnalyzer`: depth only; expression, head and sketch are those of `base`.

    Equals `base` until it is trained.

    Args:
        base: the analyzer that is corrected.
        d_max: longest depth that the correction knows; at least as long as the base's distribution.
        width: of the layer over the pooled token states.
        heads: ways to pool them.
        dropout: before each layer.
        word_dropout: share of question tokens hidden in training.
    """

    def __init__(
        self,
        base: QuestionAnalyzer,
        text_encoder: TextEncoder,
        d_max: int = 4,
        width: int = 128,
        heads: int = 8,
        dropout: float = 0.2,
        word_dropout: float = 0.15,
    ) -> None:
        super().__init__()
        self._frozen = (base, text_encoder)
        self.d_max = d_max
        self.word_dropout = word_dropout
        self.pool = nn.Linear(text_encoder.dim, heads)
        self.merge = nn.Sequential(
            nn.LayerNorm(heads * text_encoder.dim),
            nn.Dropout(dropout),
            nn.Linear(heads * text_encoder.dim, width),
            nn.GELU(),
            nn.Dropout(dropout),
        )
        self.out = Correction(width, d_max)

    @property
    def base(self) -> QuestionAnalyzer:
        """The analyzer that is corrected; training starts from its analyses."""
        return self._frozen[0]

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        """The base's analyses with corrected depth."""
        analyses = self.base.analyze(queries)
        if not analyses:
            return analyses
        with torch.no_grad():
            depths = self.depth_logits(queries, analyses).softmax(dim=1).tolist()
        return [replace(one, depth=tuple(depth)) for one, depth in zip(analyses, depths, strict=True)]

    def depth_logits(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> Tensor:
        """`[S, D]`: log-depth of the base's analyses plus the correction; column i is i + 1 hops."""
        device = self.out.weight.device
        with frozen():
            states, mask = (x.to(device) for x in self._frozen[1].tokens([q.text for q in queries]))
        mask = hide_words(mask, self.word_dropout if self.training else 0.0)
        weights = self.pool(states).masked_fill(~mask[:, :, None], float("-inf")).softmax(dim=1)
        pooled = torch.einsum("slh,sld->shd", weights, states).flatten(1)
        correction: Tensor = self.out(self.merge(pooled))
        return self._base_logits(analyses, device) + correction

    def _base_logits(self, analyses: Sequence[Analysis], device: torch.device) -> Tensor:
        rows = torch.full((len(analyses), self.d_max), SMALLEST)
        for row, analysis in enumerate(analyses):
            if len(analysis.depth) > self.d_max:
                raise ConfigError(
                    f"analyzer.d_max is {self.d_max}, but the base analyzer gives {len(analysis.depth)} "
                    "depths; set analyzer.d_max to at least that"
                )
            rows[row, : len(analysis.depth)] = torch.tensor(analysis.depth).clamp(min=SMALLEST)
        return rows.log().to(device)
