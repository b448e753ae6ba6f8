"""The paper's system end to end with real models and no network: tiny ones, as the hub has them."""

from __future__ import annotations

import json
from pathlib import Path

from prompted_world import PLANETS
from tiny_vlms import TEXT, smolvlm, write_model, write_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run

QUESTIONS = 2
ANSWERED = {"stopped", "fallback", "terminal", "image_only"}


def text_decoder(folder: Path) -> Path:
    """A Llama of two layers whose template writes each message's text in turn."""
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    _, size = write_tokenizer(folder, ["<|im_start|>", "<|im_end|>"], template)
    settings = TEXT | {"vocab_size": size, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    return write_model(folder, LlamaForCausalLM, LlamaConfig(**settings))


def test_the_papers_system_answers_every_question_with_two_local_models(tmp_path: Path) -> None:
    overrides = [
        "parts=prompted",
        "experiment=paper",
        "chat=hf_local",
        f"chat.model={text_decoder(tmp_path / 'text')}",
        f"chat.vision_model={smolvlm(tmp_path / 'vision')}",
        "chat.dtype=float32",
        "data=custom",
        f"data.graph={PLANETS / 'graph'}",
        f"data.questions={PLANETS / 'questions.jsonl'}",
        "data.split=train",
        f"data.limit={QUESTIONS}",
        "given=[nothing]",
        f"cache_dir={tmp_path / 'cache'}",
        f"run_dir={tmp_path / 'run'}",
    ]
    evaluate_run(load_config("eval", overrides), overrides)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf8"))
    lines = (tmp_path / "run" / "predictions.jsonl").read_text(encoding="utf8").splitlines()
    predictions = [json.loads(line) for line in lines]
    assert len(predictions) == metrics["questions"] == QUESTIONS
    for one in predictions:
        assert one["provenance"] in ANSWERED
        assert one["answer"]
        assert min(one["cost"][kind] for kind in ("llm_calls", "vlm_calls", "text_tokens", "seconds")) > 0
    chat = metrics["cost"]["chat"]
    for seen in ("recognition", "hop_intent", "statement"):
        assert chat[f"{seen}.calls"] > 0
    for read in ("reference", "sketch", "ranking"):
        assert chat[f"{read}.calls"] > 0
    assert not [step for step in chat if step.endswith(".failed")], "both models could be asked"
    asked = sum(one["cost"]["llm_calls"] + one["cost"]["vlm_calls"] for one in predictions)
    assert asked == metrics["cost"]["requests"] + metrics["cost"]["cache_hits"]
    assert sum(one["cost"]["text_tokens"] for one in predictions) >= chat["tokens"] > 0
