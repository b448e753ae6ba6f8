"""Fully sharded training (FSDP) of a module that also has single numbers among its weights."""

from __future__ import annotations

from pytorch_lightning.strategies import FSDPStrategy
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


class Divided(FSDPStrategy):
    """Lightning's FSDP, on processors too; torch cannot divide a single number, so each process keeps those.

    `VisPathModule` averages their gradients, as torch leaves that to whoever keeps weights back.
    """

    def _setup_model(self, model: nn.Module) -> nn.Module:
        settings = {
            "use_orig_params": True,  # frozen weights lie beside trained ones
            **self.kwargs,
            "ignored_states": [weight for weight in model.parameters() if weight.ndim == 0],
        }
        return FullyShardedDataParallel(
            model,
            cpu_offload=self.cpu_offload,
            mixed_precision=self.mixed_precision_config,
            sharding_strategy=self.sharding_strategy,
            device_id=self.root_device,
            **settings,
        )
