"""Tests systems on one split under every protocol that its questions allow, and writes the records.

Several processes share the questions; the first one writes and prints.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import xxhash
from omegaconf import DictConfig

from vispath_lit.chat.parsing import schema_text
from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.comparison import NOTHING, assemble
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.files import write_text
from vispath_lit.evaluation.fingerprint import questions_fingerprint
from vispath_lit.evaluation.report import calibration_plot, write_report
from vispath_lit.evaluation.tables import table
from vispath_lit.launch.checkpoint import fingerprints
from vispath_lit.launch.config import plain
from vispath_lit.launch.parts import World
from vispath_lit.launch.questions import split_questions
from vispath_lit.launch.record import RunRecord, point_latest
from vispath_lit.processes import gathered, is_first
from vispath_lit.progress import console, tell
from vispath_lit.protocols import System
from vispath_lit.types import Question

PROTOCOLS = {"nothing": NOTHING, "start": "given_start", "start_and_depth": "given_start_and_depth"}


def evaluate_systems(
    config: DictConfig,
    world: World,
    system: System,
    fixed: System | None,
    record: RunRecord,
    given: Sequence[str],
    checkpoint: str | None,
) -> dict[str, object]:
    """Evaluates both systems, writes metrics, predictions and report, and prints the table.

    Args:
        given: what the questions grant, keys of `PROTOCOLS`, the first of which is the main table; one that
            no question can give is left out, and nothing is granted where none is left.
        checkpoint: its content fingerprint, for the record.

    Returns:
        the content of `metrics.json`; nothing on other processes than the first.
    """
    questions = split_questions(world, config.data.split, config.data.limit)
    if not questions:
        raise DataError(f"data={config.data.name} has no questions in split {config.data.split!r}")
    if not any(question.answers or question.answer_ids for question in questions):
        raise DataError(
            "none of the questions has answers to test against; `vispath predict` answers such files"
        )
    marks = fingerprints(world) | {"questions": questions_fingerprint(questions)}
    if checkpoint:
        marks["checkpoint"] = checkpoint
    if world.chat is not None:
        marks["chat"] = world.chat.fingerprint
    if is_first():
        record.config(plain(config))
        record.versions()
        record.fingerprints(marks)
    protocols = possible(given, questions)
    done = _evaluate(config, world, system, questions, protocols, record, marks, fixed=False)
    other = _evaluate(config, world, fixed, questions, protocols, record, marks, fixed=True) if fixed else {}
    main = PROTOCOLS[protocols[0]]
    usages = [] if world.chat is None else gathered(dict(world.chat.usage()))
    if not is_first():
        return {}
    metrics = assemble(
        done,
        data=config.data.name,
        split=config.data.split,
        fingerprints=marks,
        fixed=other or None,
        seed=config.seed,
    )
    if usages:
        metrics["cost"] = _with_totals(metrics["cost"], usages)
        if isinstance(same := metrics.get(main), dict):  # The main table under its own name.
            metrics[main] = {**same, "cost": metrics["cost"]}
    record.metrics(metrics)
    shown, against = done[main].records, other[main].records if other else ()
    write_report(record.report, metrics, shown, questions, fixed=against, seed=config.seed)
    write_text(record.folder / "calibration.svg", calibration_plot(metrics))
    outputs = Path("outputs").absolute()
    if record.folder.is_relative_to(outputs):
        point_latest(record.folder, outputs)
    console.print(table(metrics))
    tell(f"run folder: {record.folder}\nreport:     {record.report}")
    return metrics


def _with_totals(cost: object, usages: Sequence[Mapping[str, int]]) -> dict[str, object]:
    """The main table's means, with the totals of the run: every protocol, both systems, all processes.

    `requests` are those of this session, `requests_of_all_sessions` those before the run was taken up, too.
    """
    assert isinstance(cost, Mapping)
    used: Counter[str] = Counter()
    for usage in usages:
        used.update(usage)
    earlier = max(usage.get("earlier_requests", 0) for usage in usages)  # Each process has read one log.
    del used["earlier_requests"]
    totals = {key: used[key] for key in ("requests", "cache_hits")}
    return {**cost, **totals, "requests_of_all_sessions": earlier + used["requests"], "chat": dict(used)}


def possible(given: Sequence[str], questions: Sequence[Question]) -> list[str]:
    """The asked protocols that these questions can be asked under, in the order of `PROTOCOLS`."""
    for name in given:
        if name not in PROTOCOLS:
            raise ConfigError(f"given holds {name!r}; expected some of {list(PROTOCOLS)}")
    topics = any(question.topic_entity for question in questions)
    hops = any(question.hops for question in questions)
    allowed = {"nothing": True, "start": topics, "start_and_depth": topics and hops}
    if (lacking := [name for name in given if not allowed[name]]) and is_first():
        tell(f"no question says what {' and '.join(lacking)} would grant: left out")
    return [name for name in PROTOCOLS if allowed[name] and name in given] or ["nothing"]


def _settings(config: DictConfig) -> str:
    """What a system's own config says about its answers; empty where it says nothing."""
    node = plain(config)["system"]
    silent = ("_target_", "name", "batch_size", "threads")
    told = {key: value for key, value in node.items() if key not in silent}
    return json.dumps([node["_target_"], told], sort_keys=True) if told else ""


def wording(system: type[System]) -> str:
    """A hash of the prompts that stand beside a rival's class; empty where none do.

    The chat back end's fingerprint knows the prompts of the paper's steps alone, and another wording is
    another system: answers to the old one must not be taken up.
    """
    module = inspect.getmodule(system)
    prompts = [value for value in vars(module).values() if isinstance(value, Prompt)] if module else []
    told = [(p.step, p.instructions, schema_text(p.reply), p.max_tokens, p.temperature) for p in prompts]
    return xxhash.xxh3_64_hexdigest(repr(sorted(told)).encode()) if told else ""


def _evaluate(
    config: DictConfig,
    world: World,
    system: System,
    questions: Sequence[Question],
    protocols: Sequence[str],
    record: RunRecord,
    marks: Mapping[str, str],
    *,
    fixed: bool,
) -> Mapping[str, Evaluation]:
    parts = plain(config)["fixed" if fixed else "parts"]
    run_key = "" if fixed else marks.get("checkpoint", "")
    run_key += json.dumps(parts, sort_keys=True) + _settings(config) + marks.get("chat", "")
    run_key += wording(type(system))
    return {
        PROTOCOLS[name]: evaluate(
            system,
            questions,
            world.graph,
            world.text_encoder,
            grant_start="start" in name,
            grant_depth="depth" in name,
            batch_size=config.system.batch_size,
            predictions=record.predictions(PROTOCOLS[name], fixed=fixed),
            resume=True,  # a run folder that is used again goes on where it stopped
            run_key=run_key,
            usage=None if world.chat is None else world.chat.usage,
        )
        for name in protocols
    }
