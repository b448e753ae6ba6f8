"""Two forked processes that find each other as under torchrun, without its start-up time."""

from __future__ import annotations

import os
import signal
import socket
import traceback
from collections.abc import Callable

import torch

from vispath_lit.launch.joined import joined

PATIENCE = 300  # seconds, on a busy machine


def pair(work: Callable[[int], None]) -> None:
    """Runs `work(rank)` in both; fails where one of them does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [_fork(work, rank, port) for rank in range(2)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0, 0], codes


def _fork(work: Callable[[int], None], rank: int, port: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(PATIENCE)
        torch.set_num_threads(1)  # those of the parent do not come along
        names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        os.environ |= dict(zip(names, map(str, (rank, rank, 0, 2, 2)), strict=True))
        os.environ |= {"TORCHELASTIC_RUN_ID": "tests", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        with joined():
            work(rank)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
