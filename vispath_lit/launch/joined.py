"""Processes that torchrun or srun started find each other before anything is made; Lightning joins in."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from torch import distributed

from vispath_lit.errors import ConfigError
from vispath_lit.launch.values import first_line
from vispath_lit.processes import shared

STARTED = "VISPATH_STARTED"  # When the run began, in seconds since 1970: run folders are named by it.


@contextmanager
def joined() -> Iterator[None]:
    """One group of all processes from here on; nothing where there is only this one.

    Lightning's own launcher (`python train.py trainer.devices=2`) starts the others later, when the first has
    made everything; they meet in the Trainer.
    """
    found = _environment()
    if found is None or found.world_size() < 2 or distributed.is_initialized():
        yield
        return
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = found.main_address, str(found.main_port)
    backend = "gloo"
    if torch.cuda.is_available():  # gradients travel over nccl, the rest over gloo
        torch.cuda.set_device(found.local_rank() % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    distributed.init_process_group(backend, rank=found.global_rank(), world_size=found.world_size())
    try:
        os.environ[STARTED] = str(shared(time.time()))
        yield
    finally:
        distributed.destroy_process_group()


def _environment() -> ClusterEnvironment | None:
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    # A batch script knows its job's tasks too; only what srun started has that many beside it.
    tasks = os.environ.get("SLURM_NTASKS")
    if not SLURMEnvironment.detect() or os.environ.get("SLURM_STEP_NUM_TASKS") != tasks or tasks == "1":
        return None
    try:
        return SLURMEnvironment()
    except RuntimeError as error:  # It knows tasks by node alone.
        raise ConfigError(first_line(error)) from error
