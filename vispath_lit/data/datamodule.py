"""Batches of training questions in a seeded order that a checkpoint can take up in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, Sampler

from vispath_lit.data.states import QuestionBatch, StateBuilder, StateSettings
from vispath_lit.data.supervision import Supervision
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Analysis, Query

POOL = 50  # batches that share out texts by length
Analyze = Callable[[Sequence[Query]], list[Analysis]]


class SeededBatches(Sampler[list[int]]):
    """Batches of positions in an order that depends on seed and epoch alone, with a place to resume from.

    Each item of a batch is a position; the epoch travels beside the batch, as the states drawn depend on it.

    Args:
        size: how many questions.
        batch_size: questions a batch; the last one may be smaller.
        seed: of the order.
        shuffle: False keeps the stored order in every epoch.
        rank, replicas: this process takes every `replicas`-th batch, from `rank` on. Every process takes as
            many steps: what does not divide evenly is left out, or
        whole: nothing is left out, and processes without a batch in the last round get an empty one.
        lengths: `[size]` of the questions' texts: a batch that is shuffled then has texts of about equal
            length, so that little is computed for padding.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        seed: int,
        shuffle: bool,
        rank: int = 0,
        replicas: int = 1,
        whole: bool = False,
        lengths: Sequence[int] | None = None,
    ) -> None:
        self.size = size
        self.lengths = None if lengths is None else np.asarray(lengths, dtype=np.int64)
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.rank = rank
        self.replicas = replicas
        self.whole = whole
        self.epoch = 0
        self.done = 0
        self._first = 0

    @property
    def sampler(self) -> SeededBatches:
        """Where Lightning looks for `set_epoch`."""
        return self

    def __len__(self) -> int:
        batches = -(-self.size // self.batch_size)
        return -(-batches // self.replicas) if self.whole else batches // self.replicas

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning at the start of each epoch."""
        if epoch != self.epoch:
            self.epoch, self.done, self._first = epoch, 0, 0

    def __iter__(self) -> Iterator[list[int]]:
        first, self._first = self._first, 0
        order = self._shuffled() if self.shuffle else np.arange(self.size)
        starts = range(
            self.rank * self.batch_size, len(self) * self.replicas * self.batch_size, self.batch_size
        )
        for number, start in enumerate(starts[:: self.replicas][first:], first + 1):
            self.done = number
            yield order[start : start + self.batch_size].tolist()

    def _shuffled(self) -> NDArray[np.int64]:
        """All positions at random, those of about equal length together; the smaller batch is the last."""
        rng, batch = np.random.default_rng([self.seed, self.epoch]), self.batch_size
        order = rng.permutation(self.size)
        if self.lengths is None:
            return order
        for low in range(0, self.size, batch * POOL):
            pool = order[low : low + batch * POOL]
            order[low : low + batch * POOL] = pool[np.argsort(self.lengths[pool], kind="stable")]
        full = self.size - self.size % batch
        return np.concatenate([rng.permutation(order[:full].reshape(-1, batch)).reshape(-1), order[full:]])

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.epoch, self._first = int(state["epoch"]), int(state["done"])
        self.done = self._first


class _ResumableLoader(DataLoader[int]):
    """A loader that Lightning takes for resumable; `QuestionDataModule.state_dict` says why it is."""

    def __init__(self, builder: StateBuilder, batches: SeededBatches) -> None:
        def collate(positions: Sequence[int]) -> QuestionBatch | None:
            return builder.batch(positions, [batches.seed, batches.epoch]) if positions else None

        self._batches = batches
        # An own generator: else each epoch would draw from torch's, which a resumed run would do once more.
        super().__init__(
            _Positions(batches.size), batch_sampler=batches, collate_fn=collate, generator=torch.Generator()
        )

    def state_dict(self) -> dict[str, int]:
        return self._batches.state_dict()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self._batches.load_state_dict(state)


class _Positions(Dataset[int]):
    """The positions themselves: states are drawn for a batch at a time."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, position: int) -> int:
        return position


class QuestionDataModule(pl.LightningDataModule):
    """Questions with accepted paths, as batches from which the model draws its states.

    Args:
        graph: the graph of the questions.
        train, val: supervision of the two splits (`data.supervision.supervise`).
        analyze: what the search knows of a question's words (`QuestionAnalyzer.analyze`).
        settings: how states are drawn; `inverse`, `hub_cap` and `backtrack` as in the search.
        batch_size: questions a step; each gives as many states as it has hops.
        seed: of order and samples.
        images: whether batches hold the questions' pictures.
        by_length: whether a training batch has questions of about equal length.

    Raises:
        DataError: no training question has an accepted path.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        train: Supervision,
        val: Supervision,
        analyze: Analyze,
        settings: StateSettings,
        batch_size: int = 64,
        seed: int = 0,
        images: bool = False,
        by_length: bool = False,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; expected at least 1")
        if not len(train):
            raise DataError(
                f"none of the {train.report.questions} training questions has an accepted path "
                f"({train.report}); give gold_paths, or topic_entity and answer_ids that the graph connects"
            )
        self.batch_size = batch_size
        self.seed = seed
        self.by_length = by_length
        self.builders = {
            name: StateBuilder(
                graph, data, analyze([Query(q.text) for q in data.questions]), settings, images
            )
            for name, data in (("train", train), ("val", val))
        }
        self._batches: SeededBatches | None = None
        self._place = {"epoch": 0, "done": 0}

    def train_dataloader(self) -> DataLoader[int]:
        """Every process takes as many batches.

        Raises:
            DataError: there are fewer batches than processes.
        """
        builder = self.builders["train"]
        batches = self._share(builder, shuffle=True)
        if not len(batches):
            raise DataError(
                f"{len(builder.supervision)} training questions make fewer batches of {self.batch_size} than "
                f"the {batches.replicas} processes; use a smaller training.batch_size or fewer devices"
            )
        batches.load_state_dict(self._place)
        self._batches = batches
        return _ResumableLoader(builder, batches)

    def state_dict(self) -> dict[str, int]:
        """The place within the epoch.

        Lightning would store it with the loader, but forgets to load it where the loader was asked for
        its length before, as a learning rate schedule must.
        """
        return self._place if self._batches is None else self._batches.state_dict()

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self._place = {key: int(state_dict[key]) for key in ("epoch", "done")}

    def val_dataloader(self) -> DataLoader[int]:
        """The processes share the questions, none is left out; an empty batch is None."""
        builder = self.builders["val"]
        return _ResumableLoader(builder, self._share(builder, shuffle=False))

    def _share(self, builder: StateBuilder, *, shuffle: bool) -> SeededBatches:
        """The batches of one process; only where they are shuffled may some be left out."""
        trainer = self.trainer
        lengths = [len(question.text) for question in builder.supervision.questions]
        return SeededBatches(
            len(builder.supervision),
            self.batch_size,
            self.seed,
            shuffle=shuffle,
            rank=trainer.global_rank if trainer else 0,
            replicas=trainer.world_size if trainer else 1,
            whole=not shuffle,
            lengths=lengths if self.by_length else None,
        )
