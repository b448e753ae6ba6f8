"""Pieces of work by Ray Data: one worker makes the pieces, others do them, and results stream back in order.

Pieces that wait lie in Ray's object store, whose size it bounds. The local Ray that is started here is this
machine's alone; with `RAY_ADDRESS` (or a Ray that runs in this process already) the
workers are that cluster's, and need the same package and files under the same paths.
"""

from __future__ import annotations

import contextlib
import logging
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from vispath_lit.errors import ConfigError, EngineError

T = TypeVar("T")
R = TypeVar("R")
COLUMN = "piece"
RETRIES = 2  # Of a piece whose worker was lost; Ray's own default is to try for ever.
ATTEMPTS = 2  # Ray gives its own helpers 15 seconds to start, too few for the first time on a busy machine.


class RayData:
    """An `Engine` over a cluster of Ray.

    Args:
        workers: pieces that are done at the same time; None takes one a processor of the cluster.

    Raises:
        ConfigError: no workers, or Ray is not installed.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} workers: expected at least 1")
        # It counts its users over the network unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray.data  # noqa: F401
        except ImportError as error:
            raise ConfigError("the engine ray needs Ray: pip install 'vispath-lit[ray]'") from error
        warnings.filterwarnings("ignore", r"`ray_remote_args`|The maximum number of concurrent tasks")
        self.workers = workers

    def map(self, work: Callable[[T], R], pieces: Callable[[], Iterable[T]]) -> Iterator[R]:
        """See `Engine.map`; everything that travels must be one that pickle can send.

        Raises:
            EngineError: Ray did not start, or lost its workers.
        """
        import ray

        self.start()
        folder = Path.cwd()
        try:
            for packed in self._stream(partial(_made, pieces, folder), partial(_done, work, folder)):
                result = _unpacked(packed)
                if isinstance(result, _Failed):
                    raise result.error
                yield result
        except ray.exceptions.RayError as error:
            said = str(error).strip().splitlines()[-1]
            raise EngineError(
                f"Ray gave up ({type(error).__name__}: {said}). Workers are lost where a machine has no "
                "memory left: try fewer of them, or --engine alone"
            ) from error

    def _stream(self, made: Callable[[], Iterator[bytes]], done: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """Ray Data's streaming execution; a block holds one piece, so that it is one task."""
        import ray

        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # What matters is raised.
        context = ray.data.DataContext.get_current().copy()
        context.execution_options.preserve_order = True
        context.target_max_block_size = 1
        context.enable_progress_bars = False
        with ray.data.DataContext.current(context):
            # The worker that makes the pieces takes no processor of those that do them; as the demands
            # differ, Ray does not join the two steps into one.
            made_there = ray.data.read_datasource(
                _source(made), num_cpus=0, override_num_blocks=1, ray_remote_args={"max_retries": RETRIES}
            )
            results = made_there.map_batches(
                partial(_each, done),
                batch_size=None,
                batch_format="pyarrow",
                num_cpus=1,
                compute=ray.data.TaskPoolStrategy(size=self.workers),
                max_retries=RETRIES,
            )
        for block in results.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from block.column(COLUMN).to_pylist()

    def start(self) -> None:
        """Connects to the cluster that there is, or starts one on this machine; `map` does so, too.

        Raises:
            EngineError: there is none, or it did not start.
        """
        import ray

        address = os.environ.get("RAY_ADDRESS")
        given: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if not address:
            given |= {"num_cpus": self.workers, "include_dashboard": False}
        for left in reversed(range(1 if address else ATTEMPTS)):
            if ray.is_initialized():
                return
            try:
                ray.init(**given)
            except Exception as error:  # Ray raises whatever happened, also a plain Exception.
                ray.shutdown()
                if not left:
                    raise EngineError(
                        f"no Ray at {address or 'this machine'}: {error}. See to it, or try --engine alone"
                    ) from error


class _Failed(NamedTuple):
    """What a piece, or the making of one, raised."""

    error: Exception


def _made(pieces: Callable[[], Iterable[T]], folder: Path) -> Iterator[bytes]:
    try:
        with contextlib.chdir(folder):  # Paths in the pieces may be relative.
            yield from map(_packed, pieces())
    except Exception as error:
        yield _packed_error(error)


def _done(work: Callable[[Any], Any], folder: Path, packed: bytes) -> bytes:
    try:
        piece = _unpacked(packed)
        if isinstance(piece, _Failed):
            return packed
        with contextlib.chdir(folder):
            return _packed(work(piece))
    except Exception as error:
        return _packed_error(error)


def _each(done: Callable[[bytes], bytes], block: Any) -> Any:
    return _block([done(packed) for packed in block.column(COLUMN).to_pylist()])


def _block(packed: list[bytes]) -> Any:
    return pa.table({COLUMN: pa.array(packed, type=pa.large_binary())})


def _packed(value: object) -> bytes:
    from ray import cloudpickle

    packed: bytes = cloudpickle.dumps(value)
    return packed


def _unpacked(packed: bytes) -> Any:
    """Only what a process of this very run has packed, as Ray's own messages are; never a file."""
    from ray import cloudpickle

    return cloudpickle.loads(packed)


def _packed_error(error: Exception) -> bytes:
    """With its traceback as a note; an error that cannot be sent goes as its words."""
    error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    with contextlib.suppress(Exception):
        packed = _packed(_Failed(error))
        _unpacked(packed)
        return packed
    return _packed(_Failed(EngineError(f"{type(error).__name__} in a worker: {error}")))


def _source(made: Callable[[], Iterator[bytes]]) -> Any:
    """A source of Ray Data whose one task makes all pieces."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    class Pieces(Datasource):  # type: ignore[misc]  # Ray is not there for every check.
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *args: Any, **kwargs: Any) -> list[Any]:
            unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [ReadTask(lambda: (_block([packed]) for packed in made()), unknown)]

    return Pieces()
