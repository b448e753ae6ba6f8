"""LoRA through peft on a frozen model, of which nothing but the adapter is trained or saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from peft import LoraConfig, inject_adapter_in_model
from torch import Tensor, nn

from vispath_lit.errors import ConfigError


class LoraAdapter(nn.Module):
    """The adapter's weights as a module; the model that they adapt follows it to a device, unregistered.

    So a state dict, an optimiser and a count of weights meet the adapter alone. The frozen model stays in
    eval mode (its dropout would only blur what it knows); dropout on the adapter's input follows `train`.
    The untrained adapter changes nothing: its second matrix is zero. With rank 0 there is none.

    Args:
        model: is frozen and changed in place.
        targets: a regular expression that the whole name of an adapted linear layer matches.
        rank: of the two matrices; 0 leaves the model as it is (the ablation without LoRA).
        alpha: the correction is scaled by alpha / rank.
        dropout: of the adapter's input.
        movable: False for weights that stay where they were loaded, as quantised ones do.

    Raises:
        ConfigError: numbers out of range, or no layer is called so.
    """

    def __init__(
        self,
        model: nn.Module,
        targets: str,
        rank: int,
        alpha: int,
        dropout: float,
        movable: bool = True,
    ) -> None:
        super().__init__()
        if rank < 0 or alpha <= 0 or not 0 <= dropout < 1:
            raise ConfigError(
                f"vlm.rank is {rank}, vlm.alpha {alpha}, vlm.dropout {dropout}; "
                "expected at least 0, above 0, and a share below 1"
            )
        model.requires_grad_(False)
        if rank:
            _inject(model, LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=targets))
        self._model = (model.eval(),)
        self._movable = movable
        self.weights = nn.ParameterDict(_adapter_weights(model))

    @property
    def model(self) -> Any:
        """The frozen model with the adapter in it."""
        return self._model[0]

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for name, module in self.model.named_modules():
            if "lora_dropout" in name:
                module.train(mode)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves the frozen model along; the adapter's weights are the same objects in both places."""
        if self._movable:
            self.model._apply(fn, recurse)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]


def _inject(model: nn.Module, settings: LoraConfig) -> None:
    try:
        inject_adapter_in_model(settings, model)
    except ValueError as error:
        raise ConfigError(
            f"vlm.targets {settings.target_modules!r} names no layer of {type(model).__name__}"
        ) from error


def _adapter_weights(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Names and weights of the adapter, in full precision whatever the model's is."""
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
            yield name.replace(".", "/"), weight  # a registered name has no dots
