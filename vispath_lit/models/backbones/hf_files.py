"""Opens an image-text-to-text model and its processor: a local folder, or by id from the hub."""

from __future__ import annotations

import importlib.util
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModelForImageTextToText,
    AutoTokenizer,
    BitsAndBytesConfig,
    Idefics3Processor,
)
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

from vispath_lit.encoders.minilm import quiet
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.errors import ConfigError

Quantize = Literal["none", "8bit", "4bit"]
# Stay in full precision: small beside the language model, and their features are kept.
UNPACKED = ["lm_head", *(f"model.{name}" for name in ("visual", "vision_model", "vision_tower"))]
UNPACKED += ["model.connector", "model.multi_modal_projector"]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where a model lies.

    Attributes:
        name: a folder, or the hub's owner/name.
        revision: a commit, tag or branch of the hub.
        local: whether it is a folder; nothing is then asked of the hub.
    """

    name: str
    revision: str | None
    local: bool

    @classmethod
    def find(cls, model: str, revision: str | None = None) -> ModelFiles:
        """A folder where there is one, else a hub id.

        Raises:
            ConfigError: neither a folder with a model in it nor an id.
        """
        folder = Path(model).expanduser()
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                raise ConfigError(
                    f"vlm.model {folder}: no config.json; give the folder of a Hugging Face model"
                )
            return cls(str(folder), None, True)
        if not HUB_ID.fullmatch(model):
            raise ConfigError(
                f"vlm.model {model!r} is no folder, and no id of the hub such as Qwen/Qwen2.5-VL-7B-Instruct"
            )
        return cls(model, revision, False)

    def config(self) -> Any:
        """The model's configuration."""
        return self._open(AutoConfig.from_pretrained)

    def model(self, config: Any, dtype: torch.dtype, quantize: Quantize) -> Any:
        """The model without its language head, in eval mode.

        Raises:
            ConfigError: files that are missing, damaged, no safetensors, or lack weights of the model.
        """
        more: dict[str, Any] = {}
        if quantize != "none":
            more["quantization_config"] = quantization(quantize, dtype)
            more["device_map"] = {"": torch.cuda.current_device() if torch.cuda.is_available() else "cpu"}
        model, report = self._open(
            AutoModelForImageTextToText.from_pretrained,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            output_loading_info=True,
            **more,
        )
        # transformers would fill them with noise and go on.
        if missing := sorted(key for key in report["missing_keys"] if not key.startswith("lm_head")):
            raise ConfigError(
                f"vlm.model {self.name}: {len(missing)} weights are not in its files, such as {missing[0]}; "
                "the folder is not complete"
            )
        if not isinstance(core := getattr(model, "model", None), nn.Module):
            raise ConfigError(f"vlm.model {self.name}: {type(model).__name__} has no model below its head")
        for flag in ("is_loaded_in_8bit", "is_loaded_in_4bit"):  # by which peft knows quantised layers
            setattr(core, flag, getattr(model, flag, False))
        return core.eval()

    def whole(self, kind: Any, **more: Any) -> Any:
        """A model with its language head, or a tokenizer, by its `Auto` class.

        Raises:
            ConfigError: files that are missing or damaged.
        """
        return self._open(kind.from_pretrained, **more)

    def processor(self, config: Any) -> Any:
        """Tokenizer and image processor in the family's own processor, without its part for videos.

        That part needs torchvision, which need not be there; pictures are prepared by Pillow, so that they
        are the same on every machine.
        """
        family = self._family(config)
        parameters = inspect.signature(family).parameters
        settings, _ = self._open(family.get_processor_dict)
        values = {key: value for key, value in settings.items() if key in parameters}
        if "video_processor" in parameters:
            values["video_processor"] = None
        values["image_processor"] = self._open(AutoImageProcessor.from_pretrained, backend="pil")
        values["tokenizer"] = self._open(AutoTokenizer.from_pretrained)
        processor = images_only(family)(**values)
        if processor.chat_template is None:  # older folders keep it with the tokenizer
            processor.chat_template = processor.tokenizer.chat_template
        return processor

    def _family(self, config: Any) -> Any:
        """The family's processor class."""
        if config.model_type == "smolvlm":  # the same prompts without the packages that videos need
            return Idefics3Processor
        if type(config) not in PROCESSOR_MAPPING:
            raise ConfigError(f"vlm.model {self.name}: no processor is known for {type(config).__name__}")
        return PROCESSOR_MAPPING[type(config)]

    def _open(self, function: Any, **more: Any) -> Any:
        """Calls a `from_pretrained` without remote code.

        Raises:
            ConfigError: whatever it raised, as what the user can do about it.
        """
        try:
            with quiet():
                return function(
                    self.name,
                    revision=self.revision,
                    local_files_only=self.local,
                    trust_remote_code=False,
                    **more,
                )
        except Exception as error:  # readers of foreign files raise nearly anything; all of it is said
            where = "the folder" if self.local else "the hub, which must be reachable, and the id"
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise ConfigError(f"vlm.model {self.name} cannot be opened, check {where}: {reason}") from error


def images_only(family: type[Any]) -> type[Any]:
    """A processor class that takes None for its video processor."""

    class ImagesOnly(family):  # type: ignore[misc]
        @classmethod
        def get_attributes(cls) -> list[str]:
            return [name for name in family.get_attributes() if name != "video_processor"]

    return ImagesOnly


def quantization(kind: Quantize, dtype: torch.dtype) -> BitsAndBytesConfig:
    """The language model's weights in 8 or 4 bits (NF4) that are unpacked to `dtype`.

    Raises:
        ConfigError: bitsandbytes is not installed.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ConfigError(f"vlm.quantize={kind} needs the package bitsandbytes: pip install bitsandbytes")
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_8bit=kind == "8bit",
        load_in_4bit=kind == "4bit",
        llm_int8_skip_modules=UNPACKED,  # of 4 bits too
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype,
    )


def compute_dtype(name: str) -> torch.dtype:
    """`auto` is bfloat16 on a GPU or a processor that computes in it, else float32."""
    if name == "float16":
        return torch.float16
    if name == "auto" and torch.cuda.is_available():
        return torch.bfloat16
    return choose_dtype(name)
