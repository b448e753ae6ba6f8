"""Algorithm 1, written once; each of its steps is a part behind a Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.backbones.forwards import counting
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.remembered import remembering
from vispath_lit.models.selectors.best_path import rank_endpoints
from vispath_lit.protocols import (
    AnswerSelector,
    ChainExaminer,
    ChainScorer,
    EdgeScorer,
    EvidenceJudge,
    Grounder,
    IntentModel,
    QuestionAnalyzer,
    TextEncoder,
    TextProvider,
)
from vispath_lit.search.answering import Walk, bound_depth
from vispath_lit.search.beams import remaining, starts
from vispath_lit.search.discovery import discover
from vispath_lit.search.grounding import validate
from vispath_lit.search.pruning import by_state, examine, objective_texts, rank_by_edge, rank_chains
from vispath_lit.search.settings import SearchSettings
from vispath_lit.search.trace import Hop, traces
from vispath_lit.types import (
    Candidate,
    Cost,
    Evidence,
    Intents,
    Path,
    Paths,
    Prediction,
    Provenance,
    Query,
    States,
)


class Searcher:
    """Algorithm 1 for many questions at once.

    The parameters are the parts, under the names that configs give them; `search` holds the numbers.

    Raises:
        ConfigError: text stages of which not exactly the last one decides.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        texts: TextProvider,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        intent: IntentModel,
        edge_scorer: EdgeScorer,
        chain_scorer: ChainScorer,
        examiner: ChainExaminer,
        judge: EvidenceJudge,
        selector: AnswerSelector,
        search: SearchSettings,
    ) -> None:
        keeps = [stage.keep for stage in texts.stages]
        if not keeps or keeps[-1] is not None or None in keeps[:-1]:
            raise ConfigError(
                f"texts has stages that keep {keeps}; all but the last need a number, the last None"
            )
        self.graph = graph
        self.text_encoder = text_encoder
        self.texts = texts
        self.analyzer = analyzer
        self.grounder = grounder
        self.intent = intent
        self.edge_scorer = edge_scorer
        self.chain_scorer = chain_scorer
        self.examiner = examiner if search.chain_pruning else NoExaminer()
        self.judge = judge
        self.selector = selector
        self.settings = search

    # no_grad, not inference_mode: what parts cache here is used again in training.
    @torch.no_grad()
    def search(self, queries: Sequence[Query]) -> list[Prediction]:
        """One prediction a query, in order; its cost holds the forwards of a backbone."""
        with remembering(), counting() as forwards:
            found = self._search(queries)
        costs = [Cost(vlm_forwards=forwards[id(query)]) for query in queries]
        return [replace(one, cost=cost) for one, cost in zip(found, costs, strict=True)]

    def _search(self, queries: Sequence[Query]) -> list[Prediction]:
        analyses = [
            bound_depth(query, analysis, self.settings.d_max)
            for query, analysis in zip(queries, self.analyzer.analyze(queries), strict=True)
        ]
        ranked = self._validated(queries, self.grounder.ground(queries, analyses))
        walks = [Walk(*one) for one in zip(queries, analyses, ranked, strict=True)]
        active = [walk for walk in walks if walk.candidates]
        paths = starts([walk.candidates[0].entity for walk in active])
        for hop in range(1, self.settings.d_max + 1):
            if not active:
                break
            active, paths = self._advance(active, paths, hop)
        return self._conclude(walks)

    def hop(self, states: States, spent: Tensor | None = None) -> Hop:
        """One hop of S questions (Eq. 4-8): intents, discovered paths, ranked and kept chains.

        Args:
            spent: `[S]` long, the `texts` of earlier hops; None is 0 each.
        """
        settings = self.settings
        spent = torch.zeros(len(states), dtype=torch.long) if spent is None else spent
        intents = self.intent(states)
        stages = self.texts.stages
        found = discover(self.graph, states.paths, intents, stages, self.edge_scorer, settings, spent)
        if settings.chain_pruning:
            objective = self._objective(states, intents)
            chains = rank_chains(found, intents, objective, stages, self.chain_scorer, settings)
        else:
            chains = rank_by_edge(found, settings)
        kept = examine(states.queries, chains, self.examiner, settings)
        edges = torch.zeros(len(states), dtype=torch.long).index_add(0, states.paths.state, found.edges)
        return Hop(intents, edges, found.texts, found.paths, chains, kept)

    @cached_property
    def relation_vectors(self) -> Tensor:
        """`[R, d]`: SBERT(r) of the forward relations, for Eq. 2."""
        labels = self.graph.relation_labels()[: self.graph.num_relations]
        return self.text_encoder.encode(labels)

    def _validated(
        self, queries: Sequence[Query], ranked: Sequence[Sequence[Candidate]]
    ) -> list[list[Candidate]]:
        """The candidates after Eq. 2-3; only questions with a choice are looked at."""
        updated = [list(candidates) for candidates in ranked]
        unsure = [i for i, candidates in enumerate(ranked) if len(candidates) > 1]
        if self.settings.validation and unsure:
            questions = self.text_encoder.encode([queries[i].text for i in unsure])
            lists = validate(
                self.graph,
                [ranked[i] for i in unsure],
                questions,
                self.relation_vectors,
                self.settings.delta,
            )
            for i, candidates in zip(unsure, lists, strict=True):
                updated[i] = candidates
        return updated

    def _objective(self, states: States, intents: Intents) -> Tensor:
        """`[S, d]`: SBERT(Q ‖ S_Q ‖ q)."""
        return self.text_encoder.encode(objective_texts(states.queries, states.analyses, intents.texts))

    def _advance(self, active: list[Walk], paths: Paths, hop: int) -> tuple[list[Walk], Paths]:
        """One hop and its evidence; gives the questions that go on, with their kept paths."""
        states = States([walk.query for walk in active], [walk.analysis for walk in active], paths)
        step = self.hop(states, torch.tensor([walk.texts for walk in active]))
        kept = by_state(step.kept, len(active))
        for walk, mine, texts in zip(active, kept, step.texts.tolist(), strict=True):
            walk.visited += mine
            walk.texts += texts
        evidence = self._judged(active, kept, hop)
        told = traces(step, kept, evidence, self.settings)
        for walk, trace in zip(active, told, strict=bool(told)):  # None at all where none is asked for.
            walk.trace.append(trace)
        going = [bool(mine) and not walk.stopped for walk, mine in zip(active, kept, strict=True)]
        return [walk for walk, on in zip(active, going, strict=True) if on], remaining(step.kept, going)

    def _judged(self, active: list[Walk], kept: Sequence[Sequence[Path]], hop: int) -> list[Evidence | None]:
        """Eq. 9-10 for the questions that kept a path; None for the others."""
        alive = [i for i, mine in enumerate(kept) if mine]
        judged = self.judge.judge(
            [active[i].query for i in alive],
            [active[i].analysis for i in alive],
            [kept[i] for i in alive],
            hop,
        )
        found: list[Evidence | None] = [None] * len(active)
        for i, evidence in zip(alive, judged, strict=True):
            active[i].take(evidence, self.settings)
            found[i] = evidence
        return found

    def _conclude(self, walks: Sequence[Walk]) -> list[Prediction]:
        """The answers: from z*, else from the paths ever kept, else whatever the selector can do without."""
        for walk in walks:
            walk.end()
        selected = self.selector.select(
            [walk.query for walk in walks],
            [walk.evidence for walk in walks],
            [walk.visited for walk in walks],
        )
        return [self._prediction(walk, *chosen) for walk, chosen in zip(walks, selected, strict=True)]

    def _prediction(self, walk: Walk, answer: str, entity: int | None, provenance: Provenance) -> Prediction:
        paths = walk.deciding(self.settings)
        reached = follow(self.graph, paths[0].entities[0], paths[0].relations).tolist() if paths else []
        found = Prediction(
            answer=answer,
            answer_entity=entity,
            provenance=walk.provenance(provenance, self.settings),
            ranked=tuple(rank_endpoints(paths if walk.evidence is not None else walk.visited)),
            answer_set=tuple(reached),
            paths=paths,
            candidates=tuple(walk.candidates),
            depth=walk.analysis.hops,
            answerability=0.0 if walk.evidence is None else walk.evidence.answerability,
            statement="" if walk.evidence is None else walk.evidence.statement,
            trace=tuple(walk.trace),
        )
        return replace(found, confidence=self.selector.confidence(found))
