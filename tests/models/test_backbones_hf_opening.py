"""What is opened as a vision-language backbone, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opened_vlms import STATEMENT, broken, opened, written
from safetensors.torch import load_file, save_file

from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.hf import HuggingFaceBackbone


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return written(tmp_path_factory)


@pytest.mark.parametrize("name", ["qwen2_5_vl", "idefics3"])
@pytest.mark.parametrize("place", ["chat_template.json", "tokenizer_config.json"])
def test_a_chat_template_is_found_where_folders_keep_it(
    name: str, place: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = Path(broken(folders[name], tmp_path / "copy", "chat_template.jinja", None))
    settings = json.loads((copy / place).read_text()) if (copy / place).is_file() else {}
    settings["chat_template"] = (folders[name] / "chat_template.jinja").read_text()
    (copy / place).write_text(json.dumps(settings))
    expected = opened(folders[name]).prompts("Who?", STATEMENT, True)
    assert opened(copy).prompts("Who?", STATEMENT, True) == expected
    assert "assistant" in expected


def test_what_cannot_be_opened_is_said(folders: dict[str, Path], tmp_path: Path) -> None:
    good = folders["qwen2_5_vl"]
    with pytest.raises(ConfigError, match=r"is no folder, and no id of the hub"):
        HuggingFaceBackbone(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        HuggingFaceBackbone(str(tmp_path / "empty"))
    for i, (name, content, said) in enumerate(
        [
            ("config.json", b"{", "cannot be opened"),
            ("config.json", json.dumps({"model_type": "bert"}).encode(), "family 'bert'"),
            ("config.json", json.dumps({"model_type": "mine"}).encode(), "cannot be opened"),
            ("model.safetensors", None, "cannot be opened"),
            ("model.safetensors", b"no weights", "cannot be opened"),
            ("tokenizer.json", None, "vlm.model"),
            ("preprocessor_config.json", None, "vlm.model"),
            ("chat_template.jinja", b"{{ nobody.knows }}", "chat template"),
            ("chat_template.jinja", b"{{ messages[0].role }}", "chat template"),
        ]
    ):
        with pytest.raises(ConfigError, match=said):
            HuggingFaceBackbone(broken(good, tmp_path / str(i), name, content))


def test_missing_weights_are_no_noise(folders: dict[str, Path], tmp_path: Path) -> None:
    weights = load_file(folders["idefics3"] / "model.safetensors")
    lost = next(name for name in weights if "text_model.layers.1" in name)
    del weights[lost]
    copy = broken(folders["idefics3"], tmp_path / "copy", "generation_config.json", b"{}")
    save_file(weights, Path(copy) / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match="1 weights are not in its files"):
        HuggingFaceBackbone(copy)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"targets": r"nothing\.here"}, "names no layer"),
        ({"rank": -1}, r"vlm\.rank is -1"),
        ({"max_pixels": 10}, r"vlm\.max_pixels is 10"),
        ({"positions": 0}, "positions 0"),
        ({"quantize": "4bit"}, "pip install bitsandbytes"),
    ],
)
def test_values_out_of_range_name_their_key(
    settings: dict[str, Any], said: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=said):
        HuggingFaceBackbone(str(folders["qwen2_5_vl"]), **settings)


def test_a_hub_id_that_cannot_be_reached_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match="the hub, which must be reachable"):
        HuggingFaceBackbone("nobody/no-such-model")
