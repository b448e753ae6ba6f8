"""Any Hugging Face image-text-to-text model as backbone, frozen, with LoRA on its language model."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from typing import Any, Literal, Self

from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.hf_files import ModelFiles, Quantize, compute_dtype
from vispath_lit.models.backbones.hf_prompts import SHORTEST, STRETCH, Prompts, fitted
from vispath_lit.models.backbones.hf_vision import VisionFeatures, moved
from vispath_lit.models.backbones.lora import LoraAdapter
from vispath_lit.models.backbones.states import batches, joined
from vispath_lit.types import Query

# The attention of the language model, and never a layer of the vision tower: bare layer names would hit both.
_LAYERS = r"\.layers\.\d+\.self_attn\.(q|k|v|o)_proj"
TARGETS = {
    "qwen2_vl": f"language_model{_LAYERS}",
    "qwen2_5_vl": f"language_model{_LAYERS}",
    "qwen3_vl": f"language_model{_LAYERS}",
    "idefics3": f"text_model{_LAYERS}",
    "smolvlm": f"text_model{_LAYERS}",
    "llava_onevision": f"language_model{_LAYERS}",
}


class HuggingFaceBackbone(nn.Module):
    """Hidden states of the prompt's last positions, read once a state.

    The picture comes first in a prompt and attention is causal, so the last positions hold question, walked
    paths and what they found in the picture; keeping all would cost 14 kB a picture token and state in a 7B
    model. The language head is never run.

    Args:
        model: a local folder, or an id of the hub, from where it is downloaded; no code of it is run and no
            pickled weights are read.
        revision: commit, tag or branch on the hub; name a commit to be sure of what was trained on.
        targets: a regular expression for the adapted layers; None takes the family's own.
        rank, alpha, dropout: of the adapter.
        dtype: of the frozen model; `auto` is bfloat16 on a GPU or a processor that computes in it. Adapter
            and results are float32.
        quantize: the language model's weights in 8 or 4 bits, through bitsandbytes.
        gradient_checkpointing: recompute layers in the backward pass; less memory, a third more time.
        max_pixels: of a picture; larger ones are shrunk.
        max_tokens: of question and walked paths.
        positions: last ones of a prompt whose hidden states are given.
        batch: states a forward pass.
        cache_mb: megabytes of picture features kept in memory.

    Raises:
        ConfigError: a model that cannot be opened or adapted, or values out of range.
    """

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        targets: str | None = None,
        rank: int = 16,
        alpha: int = 32,
        dropout: float = 0.05,
        dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto",
        quantize: Quantize = "none",
        gradient_checkpointing: bool = False,
        max_pixels: int = 200_704,
        max_tokens: int = 192,
        positions: int = 64,
        batch: int = 8,
        cache_mb: int = 1024,
    ) -> None:
        super().__init__()
        if max_pixels < SHORTEST**2 * STRETCH or min(max_tokens, positions, batch) < 1 or cache_mb < 0:
            raise ConfigError(
                f"vlm.max_pixels is {max_pixels}, max_tokens {max_tokens}, positions {positions}, batch "
                f"{batch}, cache_mb {cache_mb}; expected at least {SHORTEST**2 * STRETCH}, 1, 1, 1 and 0"
            )
        files = ModelFiles.find(model, revision)
        config = files.config()
        chosen = TARGETS.get(config.model_type) if targets is None else targets
        if chosen is None:
            raise ConfigError(
                f"vlm.model {model} is of the family {config.model_type!r}: say which layers of its language "
                f"model to adapt, such as vlm.targets='language_model{_LAYERS}'"
            )
        self.dim = int(config.get_text_config().hidden_size)
        self.max_pixels, self.positions, self.batch = max_pixels, positions, batch
        self.gradient_checkpointing = gradient_checkpointing
        self.processor = files.processor(config)
        self.processor.tokenizer.padding_side = "left"  # so that the last positions of a batch are adjacent
        if hasattr(self.processor.image_processor, "do_image_splitting"):
            self.processor.image_processor.do_image_splitting = False  # one tile; a picture has up to 17
        self.prompts = Prompts(self.processor, max_tokens)
        base = files.model(config, compute_dtype(dtype), quantize)
        self.adapter = LoraAdapter(base, chosen, rank, alpha, dropout, movable=quantize == "none")
        if gradient_checkpointing:
            base.activation_checkpointing_enable({"use_reentrant": False})
        self._takes = set(inspect.signature(base.forward).parameters)
        self.vision: VisionFeatures | None = None
        if VisionFeatures.offered(base):
            self.vision = VisionFeatures(base, self.processor.image_processor, cache_mb)
        self._reading = threading.Lock()  # neither tokenizer nor kept features are a thread's own

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.gradient_checkpointing:
            for module in self.adapter.model.modules():
                if isinstance(module, GradientCheckpointingLayer):
                    module.training = mode  # the layer alone: its parts stay in eval mode
        return self

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Hidden states `[S, L, dim]` float32 with L at most `positions`, and their mask `[S, L]`."""
        with self._reading:
            prompts = [
                self.prompts(query.text, statement, query.image is not None)
                for query, statement in zip(queries, statements, strict=True)
            ]
            rows: list[list[int]] = []
            for shown in (True, False):  # not every family takes both in one batch
                mine = [i for i, query in enumerate(queries) if (query.image is not None) == shown]
                found = batches([len(prompts[i]) for i in mine], self.batch)
                rows += [[mine[i] for i in batch] for batch in found]
            parts = [self._read([prompts[i] for i in batch], [queries[i] for i in batch]) for batch in rows]
        return joined(parts, rows, next(self.adapter.model.parameters()), self.dim)

    def _read(self, prompts: list[str], queries: Sequence[Query]) -> tuple[Tensor, Tensor]:
        """Hidden states and mask of a batch, whose queries all have a picture or all have none."""
        model = self.adapter.model
        images = [fitted(query.image, self.max_pixels) for query in queries if query.image is not None]
        nested = [[image] for image in images] or None
        prepared = self.processor(text=prompts, images=nested, padding=True, return_tensors="pt")
        inputs = {key: value for key, value in prepared.items() if key in self._takes}
        if images and self.vision is not None:
            inputs = {key: value for key, value in inputs.items() if not key.startswith("pixel_")}
            inputs["mm_encoder_outputs"] = {"image": self.vision(images)}
        inputs = {key: moved(value, model.device, model.dtype) for key, value in inputs.items()}
        states: Any = model(**inputs, use_cache=False, return_dict=True).last_hidden_state
        mask = inputs["attention_mask"].bool()
        return states[:, -self.positions :].float(), mask[:, -self.positions :]
