"""The final answer by a VLM: from the statement, else from verified path entities, else from the picture."""

from __future__ import annotations

from collections.abc import Sequence

from PIL.Image import Image

from vispath_lit.chat.prompts import final_answer, image_answer, verification
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.references import readable
from vispath_lit.models.linking import AnswerLinker
from vispath_lit.models.selectors.best_path import BestPathSelector, rank_endpoints
from vispath_lit.protocols import ChatBackend
from vispath_lit.types import ChatRequest, Evidence, Path, Prediction, Provenance, Query

Selected = tuple[str, int | None, Provenance]
MAX_ANSWER = 300  # characters


class PromptedSelector:
    """The prompted `AnswerSelector`.

    With evidence z*: A = VLM(I, Q, z*). Without: the likeliest ends of all paths ever kept, verified against
    their reference pictures where one of them has any, else the first of them. None of them plausible, or no
    path at all: the picture alone. No picture, or no valid answer from it: the likeliest end after all, as
    the paper's system does not abstain. Only where no path was kept either, no answer ("abstained").

    Args:
        verify: path entities that are verified, at most.
        temperature: of the softmax over the paths that gives the confidence.
    """

    def __init__(
        self, graph: KnowledgeGraph, chat: ChatBackend, verify: int = 3, temperature: float = 0.1
    ) -> None:
        if verify < 1:
            raise ConfigError(f"selector.verify is {verify}; it must be at least 1")
        self.graph = graph
        self.chat = chat
        self.verify = verify
        self.linker = AnswerLinker(graph)
        self._fixed = BestPathSelector(graph, temperature)

    def select(
        self,
        queries: Sequence[Query],
        evidence: Sequence[Evidence | None],
        visited: Sequence[Sequence[Path]],
    ) -> list[Selected]:
        chosen = self._from_evidence(queries, evidence)
        left = [i for i in range(len(queries)) if i not in chosen]
        chosen |= self._from_paths(queries, visited, [i for i in left if visited[i]])
        chosen |= self._from_pictures(queries, [i for i in left if i not in chosen])
        return [chosen.get(i) or self._last_resort(visited[i]) for i in range(len(queries))]

    def confidence(self, prediction: Prediction) -> float:
        """The fixed selector's: the answer's share of the deciding paths."""
        return self._fixed.confidence(prediction)

    def _from_evidence(
        self, queries: Sequence[Query], evidence: Sequence[Evidence | None]
    ) -> dict[int, Selected]:
        """The answer to (I, Q, z*), else the judge's, else where its best path ends; left out without any."""
        having = {i: found for i, found in enumerate(evidence) if found is not None}
        replies = self.chat.complete(
            [
                final_answer.PROMPT.request(
                    {"question": queries[i].text, "evidence": found.statement},
                    final_answer.Answer(answer=found.answer or self._end(found.paths)),
                    queries[i],
                    {"question": queries[i].image},
                )
                for i, found in having.items()
            ]
        )
        chosen: dict[int, Selected] = {}
        for (i, found), reply in zip(having.items(), replies, strict=True):
            said = reply.value.answer.strip()[:MAX_ANSWER]
            if answer := said or found.answer or self._end(found.paths):
                chosen[i] = (answer, self.linker.entity(answer, found.paths), "stopped")
        return chosen

    def _from_paths(
        self, queries: Sequence[Query], visited: Sequence[Sequence[Path]], rows: Sequence[int]
    ) -> dict[int, Selected]:
        """The most plausible end; left out where none is."""
        ends = {i: rank_endpoints(visited[i])[: self.verify] for i in rows}
        pictures = {i: [self._picture(entity) for entity in mine] for i, mine in ends.items()}
        seen = [i for i in rows if any(pictures[i])]
        replies = self.chat.complete([self._verification(queries[i], ends[i], pictures[i]) for i in seen])
        place = dict.fromkeys(rows, 0)  # Without a reference picture the best-ranked end is taken as it is.
        for i, reply in zip(seen, replies, strict=True):
            place[i] = reply.value.choice - 1
        return {
            i: (self.graph.label(ends[i][place[i]]), ends[i][place[i]], "terminal")
            for i in rows
            if 0 <= place[i] < len(ends[i])
        }

    def _verification(
        self, query: Query, ends: Sequence[int], pictures: Sequence[Image | None]
    ) -> ChatRequest[verification.Verified]:
        labels = self.graph.labels(ends)
        candidates = [{"number": n, "name": label} for n, label in enumerate(labels, start=1)]
        shown = {f"candidate {n}": picture for n, picture in enumerate(pictures, start=1)}
        return verification.PROMPT.request(
            {"question": query.text, "candidates": candidates},
            verification.Verified(choice=1),
            query,
            {"question": query.image, **shown},
        )

    def _from_pictures(self, queries: Sequence[Query], rows: Sequence[int]) -> dict[int, Selected]:
        """What the picture alone tells; left out where there is none, or no valid answer."""
        seen = [i for i in rows if queries[i].image is not None]
        replies = self.chat.complete(
            [
                image_answer.PROMPT.request(
                    {"question": queries[i].text},
                    final_answer.Answer(answer=""),
                    queries[i],
                    {"question": queries[i].image},
                )
                for i in seen
            ]
        )
        chosen: dict[int, Selected] = {}
        for i, reply in zip(seen, replies, strict=True):
            if answer := reply.value.answer.strip()[:MAX_ANSWER]:
                chosen[i] = (answer, self.linker.entity(answer, ()), "image_only")
        return chosen

    def _last_resort(self, visited: Sequence[Path]) -> Selected:
        """The likeliest end, though nothing speaks for it; no answer where no path was ever kept."""
        if not visited:
            return "", None, "abstained"
        end = rank_endpoints(visited)[0]
        return self.graph.label(end), end, "terminal"

    def _picture(self, entity: int) -> Image | None:
        """The first reference picture that can be read."""
        files = [file for file, _ in self.graph.images_of(entity)]
        for row in range(len(files)):
            if found := readable(files, [row]):
                return found[row]
        return None

    def _end(self, paths: Sequence[Path]) -> str:
        return self.graph.label(paths[0].end) if paths else ""
