"""Vision-language models of real families with a few thousand weights, in folders as the hub has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
    LlavaOnevisionImageProcessorPil,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

CORPUS = [
    "Question: What money do people pay with in the country whose flag is shown?",
    "Paths walked so far: France capital Paris located in Europe",
    "Which relation should the next step follow? user assistant",
]
QWEN_TOKENS = [
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|im_start|>",
    "<|im_end|>",
]
IDEFICS_TOKENS = [
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    "<end_of_utterance>",
    "<|im_start|>",
]
LLAVA_TOKENS = ["<image>", "<video>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}{% if c.type == 'image' %}IMAGE"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}END\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
TEXT |= {"num_attention_heads": 4, "num_key_value_heads": 2}
TEXT |= {"max_position_embeddings": 4096, "initializer_range": 0.2}
VISION: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 24, "initializer_range": 0.2}
Ids = Callable[[str], int]


def write_tokenizer(folder: Path, control: list[str], template: str | None) -> tuple[Ids, int]:
    """Trains a byte-level BPE and saves it; gives the id of a token and the size of the vocabulary."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", *control],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS, trainer)
    end = "<|endoftext|>"
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe, pad_token=end, eos_token=end
    ).save_pretrained(folder)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf8")
    return bpe.get_vocab().__getitem__, bpe.get_vocab_size()


def write_processor(folder: Path, name: str, **settings: object) -> None:
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": name, **settings}))


def write_model(folder: Path, family: type[Any], config: Any) -> Path:
    torch.manual_seed(0)
    family(config).eval().save_pretrained(folder)
    return folder


def qwen2_5_vl(folder: Path) -> Path:
    template = TEMPLATE.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    at, size = write_tokenizer(folder, QWEN_TOKENS, template.replace("END", "<|im_end|>"))
    Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=28 * 28 * 64).save_pretrained(folder)
    write_processor(folder, "Qwen2_5_VLProcessor")
    ids = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    config = Qwen2_5_VLConfig(
        text_config=TEXT | ids | {"vocab_size": size, "rope_parameters": rope},
        vision_config=VISION
        | {
            "depth": 2,
            "num_heads": 2,
            "out_hidden_size": 64,
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        image_token_id=at("<|image_pad|>"),
        video_token_id=at("<|video_pad|>"),
        vision_start_token_id=at("<|vision_start|>"),
        vision_end_token_id=at("<|vision_end|>"),
    )
    return write_model(folder, Qwen2_5_VLForConditionalGeneration, config)


def qwen3_vl(folder: Path) -> Path:
    template = TEMPLATE.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    at, size = write_tokenizer(folder, QWEN_TOKENS, template.replace("END", "<|im_end|>"))
    Qwen2VLImageProcessorPil(
        patch_size=16, min_pixels=1024, max_pixels=32 * 32 * 64, image_mean=[0.5] * 3, image_std=[0.5] * 3
    ).save_pretrained(folder)
    write_processor(folder, "Qwen3VLProcessor")
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True, "rope_theta": 1e4}
    config = Qwen3VLConfig(
        text_config=TEXT | {"vocab_size": size, "head_dim": 16, "pad_token_id": 0, "rope_parameters": rope},
        vision_config=VISION
        | {"depth": 2, "num_heads": 2, "out_hidden_size": 64, "num_position_embeddings": 64}
        | {"deepstack_visual_indexes": [0, 1]},
        image_token_id=at("<|image_pad|>"),
        video_token_id=at("<|video_pad|>"),
        vision_start_token_id=at("<|vision_start|>"),
        vision_end_token_id=at("<|vision_end|>"),
    )
    return write_model(folder, Qwen3VLForConditionalGeneration, config)


def idefics3(folder: Path) -> Path:
    processor = Idefics3ImageProcessorPil, "Idefics3Processor"
    return tiles(folder, *processor, Idefics3Config, Idefics3ForConditionalGeneration)


def smolvlm(folder: Path) -> Path:
    processor = SmolVLMImageProcessorPil, "SmolVLMProcessor"
    return tiles(folder, *processor, SmolVLMConfig, SmolVLMForConditionalGeneration)


def tiles(folder: Path, pictures: type[Any], processor: str, settings: type[Any], family: type[Any]) -> Path:
    """Idefics3 and SmolVLM, its heir."""
    template = TEMPLATE.replace("IMAGE", "<image>").replace("END", "<end_of_utterance>")
    at, size = write_tokenizer(folder, IDEFICS_TOKENS, template)
    edges = {"size": {"longest_edge": 112}, "max_image_size": {"longest_edge": 56}}
    pictures(**edges).save_pretrained(folder)
    write_processor(folder, processor, image_seq_len=4)
    config = settings(
        text_config=TEXT | {"vocab_size": size, "model_type": "llama", "pad_token_id": 0},
        vision_config=VISION
        | {"num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 56, "patch_size": 14},
        image_token_id=at("<image>"),
        scale_factor=2,
    )
    return write_model(folder, family, config)


def llava_onevision(folder: Path) -> Path:
    """Has no chat template, as a base model has none."""
    at, size = write_tokenizer(folder, LLAVA_TOKENS, None)
    pinpoints = [[28, 28], [28, 56], [56, 28], [56, 56]]
    LlavaOnevisionImageProcessorPil(
        size={"height": 28, "width": 28}, image_grid_pinpoints=pinpoints
    ).save_pretrained(folder)
    write_processor(
        folder, "LlavaOnevisionProcessor", num_image_tokens=4, vision_feature_select_strategy="full"
    )
    config = LlavaOnevisionConfig(
        text_config=TEXT | {"vocab_size": size, "model_type": "qwen2", "pad_token_id": 0},
        vision_config=VISION
        | {"num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
        | {"model_type": "siglip_vision_model", "vision_use_head": False},
        image_token_index=at("<image>"),
        video_token_index=at("<video>"),
        image_grid_pinpoints=pinpoints,
    )
    return write_model(folder, LlavaOnevisionForConditionalGeneration, config)


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "idefics3": idefics3,
    "smolvlm": smolvlm,
    "llava_onevision": llava_onevision,
}
