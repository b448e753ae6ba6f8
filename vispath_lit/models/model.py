"""The learned parts of one system as one module: what a checkpoint holds, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.learned import Reading
from vispath_lit.protocols import ChainScorer, EdgeScorer, NeighbourhoodEncoder, QuestionAnalyzer
from vispath_lit.types import Analysis, Frontier, Intents, Paths, Query, Rows, States


class TrainableIntent(Protocol):
    """An `IntentModel` that reads a question once for all of its hops."""

    def read(self, queries: Sequence[Query]) -> Reading: ...
    def hidden(self, paths: Paths, read: Reading) -> Tensor: ...
    def __call__(self, states: States, reading: Reading | None = None) -> Intents: ...


class TrainableDepth(Protocol):
    """A `QuestionAnalyzer` whose depth distribution is trained on the analyses of another."""

    @property
    def base(self) -> QuestionAnalyzer: ...
    def depth_logits(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> Tensor: ...


class TrainableStop(Protocol):
    """An `EvidenceJudge` whose answerability is trained on complete and incomplete accepted paths."""

    def stop_logits(self, hidden: Tensor) -> Tensor: ...


class LearnedParts(nn.Module):
    """The parts of one system by name; each one that is a module is trained and saved.

    Encoders, text providers and the graph are held by the parts but are no modules of theirs, so that
    the state dict holds trained weights alone.

    Args:
        parts: at least `intent`, which must be a `TrainableIntent` as `models.intents.learned` has it,
            `edge_scorer`, `chain_scorer` and `analyzer`, whose depth is trained where it is a
            `TrainableDepth`. The scorers use `neighbourhood` but do not register it, so that its weights are
            trained and saved once.

    Raises:
        ConfigError: an intent that cannot be trained.
    """

    intent: TrainableIntent
    edge_scorer: EdgeScorer
    chain_scorer: ChainScorer
    analyzer: QuestionAnalyzer

    def __init__(self, parts: Mapping[str, Any]) -> None:
        super().__init__()
        intent = parts["intent"]
        if not isinstance(intent, nn.Module) or not hasattr(intent, "read"):
            raise ConfigError(
                f"intent {type(intent).__name__} cannot be trained; use parts/intent=learned, or fit=false"
            )
        for name, part in parts.items():
            setattr(self, name, part)

    @property
    def depth(self) -> TrainableDepth | None:
        """The analyzer where its depth can be trained."""
        analyzer = self.analyzer
        if isinstance(analyzer, nn.Module) and hasattr(analyzer, "depth_logits"):
            return cast(TrainableDepth, analyzer)
        return None

    @property
    def stop(self) -> TrainableStop | None:
        """The judge where its answerability can be trained."""
        judge = getattr(self, "judge", None)
        if isinstance(judge, nn.Module) and hasattr(judge, "stop_logits"):
            return cast(TrainableStop, judge)
        return None

    def edge_logits(self, frontier: Frontier, texts: Rows, intents: Intents, accepted: Tensor) -> Tensor:
        """Logits `[E]` in training.

        Args:
            accepted: `[E]` bool, the positives: a learned scorer encodes their tails' neighbourhoods afresh.
        """
        if isinstance(self.edge_scorer, LearnedEdgeScorer):
            logits: Tensor = self.edge_scorer(frontier, texts, intents, accepted)
            return logits
        return self.edge_scorer(frontier, texts, intents)

    def begin_step(self, step: int) -> None:
        """Before each training step of an epoch, from 0: vectors that have become old are forgotten."""
        neighbourhood: NeighbourhoodEncoder | None = getattr(self, "neighbourhood", None)
        if neighbourhood is not None:
            neighbourhood.refresh(step)

    def remembered(self) -> dict[str, Tensor]:
        """What following steps will use that earlier ones computed: part of what a run resumes from."""
        neighbourhood: Any = getattr(self, "neighbourhood", None)
        found: dict[str, Tensor] = neighbourhood.remembered() if hasattr(neighbourhood, "remembered") else {}
        return found

    def remember(self, state: Mapping[str, Tensor]) -> None:
        """Takes up what `remembered` gave."""
        neighbourhood: Any = getattr(self, "neighbourhood", None)
        if hasattr(neighbourhood, "remember"):
            neighbourhood.remember(state)

    def trained_names(self) -> set[str]:
        """Names in the state dict that a checkpoint must hold: all but frozen weights.

        A grounder's are trained before the others and frozen by then (`grounders/contrast.py`).
        """
        frozen = {
            name
            for name, weight in self.named_parameters()
            if not weight.requires_grad and not name.startswith("grounder.")
        }
        return set(self.state_dict()) - frozen
