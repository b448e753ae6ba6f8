"""Trains the learned parts: supervision, batches, Lightning's Trainer, and the choice of the best weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from hydra.types import RunMode
from hydra.utils import instantiate
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig
from pytorch_lightning.callbacks import RichProgressBar
from pytorch_lightning.loggers import WandbLogger

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.supervision import SupervisionReport, supervise
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.files import write_json
from vispath_lit.launch.calibrate import calibrate
from vispath_lit.launch.checkpoint import Provenance, check_resumable, load_weights, read_checkpoint, resolve
from vispath_lit.launch.config import plain
from vispath_lit.launch.divided import Divided
from vispath_lit.launch.grounder import train_own_grounder
from vispath_lit.launch.keeping import Best, Last, RandomStates
from vispath_lit.launch.link import link
from vispath_lit.launch.parts import World, make, make_parts, make_system, section
from vispath_lit.launch.pictures import train_pictures
from vispath_lit.launch.placing import place
from vispath_lit.launch.questions import split_questions
from vispath_lit.launch.validation import Validation
from vispath_lit.launch.values import check_values, first_line
from vispath_lit.launch.warm import warm
from vispath_lit.models.closer_look import CloserLook
from vispath_lit.models.guided_walk import GuidedWalk
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.module import VisPathModule
from vispath_lit.models.residual import start_at_random
from vispath_lit.processes import count, in_turn, is_first
from vispath_lit.progress import console
from vispath_lit.protocols import System
from vispath_lit.search.pruning import objective_texts
from vispath_lit.types import Question


def fit(
    config: DictConfig, world: World, parts: Mapping[str, Any], system: System, run: Path
) -> tuple[System, Path, float]:
    """Trains `parts` in place; gives the system with the best weights, their checkpoint and their score.

    Raises:
        DataError: no question to train on.
        CheckpointError: `ckpt_path` cannot be resumed.
    """
    learned = LearnedParts(parts)
    closer: CloserLook = make(section(config.training.closer_look), {})
    if not config.training.residual_init and config.ckpt_path is None:
        start_at_random(learned)
    with in_turn():
        data, val = _data(config, world, parts, run)
    resumed = _resume(config)
    if resumed is None:
        train_own_grounder(config, parts)
    walk = _walk(config, world, parts, learned)
    search = Validation(world, system, val, run, config.data.name, config.seed) if val else None
    module = VisPathModule(learned, walk, make(section(config.training.optimizer), {}), search)
    folder = run / "checkpoints"
    metric = chooses(val, config.training.best_by)
    best = Best(folder, f"val/{metric}", resumed)
    last = Last(folder, config.training.keep_every)
    kept = [best, last, RandomStates(), Provenance(plain(config), world)]
    trainer = _trainer(config, [*kept, *([search] if search else [])], run)
    _train(trainer, module, data, resumed)
    if not best.best_model_path:
        raise ConfigError(
            "training ended before its first validation, so that nothing was kept: let trainer.max_epochs, "
            "trainer.max_steps, trainer.val_check_interval and limit_val_batches leave room for one"
        )
    chosen = Path(best.best_model_path)
    if isinstance(trainer.strategy, Divided):  # what was divided stays so
        parts = make_parts(config.parts, world)
        system, learned = make_system(config.system, world, parts), LearnedParts(parts)
        walk = _walk(config, world, parts, learned)
        search = Validation(world, system, val, run, config.data.name, config.seed) if val else None
    load_weights(learned, read_checkpoint(chosen)["state_dict"], "parts.")
    learned.eval()
    place(parts, config.device)  # Lightning has left them on the processor
    assert best.best_model_score is not None
    score = float(best.best_model_score)
    if search is not None:
        anew = config.training.residual_init
        found = train_pictures(closer, parts, walk, data, search, metric, chosen, config.seed, anew)
        score = score if found is None else found
    calibrate(world, parts["selector"], system, data.builders["val"].supervision.questions, learned, chosen)
    return system, chosen, score


def _walk(config: DictConfig, world: World, parts: Mapping[str, Any], learned: LearnedParts) -> GuidedWalk:
    settings = make(section(config.training.walk), {})
    return GuidedWalk(learned, parts["texts"], world.text_encoder, objective_texts, settings)


def _train(trainer: pl.Trainer, module: VisPathModule, data: QuestionDataModule, resumed: str | None) -> None:
    """Trains to the end, and ends the W&B run: the next one of a sweep would go on in it.

    Raises:
        KeyboardInterrupt: after Ctrl+C, where Lightning would end the process by itself.
    """
    try:
        trainer.fit(module, datamodule=data, ckpt_path=resumed, weights_only=True)
    except SystemExit as error:
        if trainer.interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger) and trainer.is_global_zero:
                logger.experiment.finish()


def _trainer(config: DictConfig, callbacks: Sequence[pl.Callback], run: Path) -> pl.Trainer:
    """Lightning's Trainer with its loggers.

    Raises:
        ConfigError: values that Lightning or a logger does not take.
    """
    settings = section(config.trainer)
    try:
        check_values(pl.Trainer, settings, "trainer")
        loggers = [instantiate(logger) for logger in config.logger.values()]
        trainer: pl.Trainer = instantiate(
            settings,
            strategy=Divided() if settings.get("strategy") == "fsdp" else settings.get("strategy", "auto"),
            callbacks=[*callbacks, *([RichProgressBar()] if console.is_terminal else [])],
            logger=loggers or False,
            default_root_dir=str(run),
            enable_progress_bar=console.is_terminal,
        )
    except (InstantiationException, MisconfigurationException, TypeError, ValueError, ImportError) as error:
        raise ConfigError(f"trainer or logger: {first_line(error.__cause__ or error)}") from error
    _check_processes(trainer)
    return trainer


def _check_processes(trainer: pl.Trainer) -> None:
    """Refuses what would train several times over.

    Raises:
        ConfigError: processes that the Trainer does not know of, or a sweep that each would begin anew.
    """
    if count() not in (1, trainer.world_size):
        raise ConfigError(
            f"{count()} processes were started, and the trainer is set for {trainer.world_size}: "
            f"say trainer=ddp, with trainer.devices and trainer.num_nodes that make {count()}"
        )
    many = HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN
    if many and count() < trainer.world_size:
        raise ConfigError(
            "a multirun over several devices would begin anew in each process: start it by "
            f"torchrun --nproc-per-node={trainer.num_devices} train.py -m ..."
        )


def _data(
    config: DictConfig, world: World, parts: Mapping[str, Any], run: Path
) -> tuple[QuestionDataModule, Sequence[Question]]:
    """The datamodule, and the val questions that choose the checkpoint; writes `supervision.json`."""
    settings = config.training
    found = {}
    for split, limit in (("train", config.data.train_limit), ("val", config.data.limit)):
        questions = link(split_questions(world, split, limit), world, parts)
        if not questions:
            raise DataError(f"data={config.data.name} has no {split} questions; training needs train and val")
        found[split] = supervise(
            world.graph,
            questions,
            d_max=config.parts.search.d_max,
            inverse=config.parts.search.inverse,
            on_error=settings.on_error,
            cache_dir=world.cache_dir,
            workers=settings.get("weak_workers"),
        )
        console.print(f"{split}: {in_words(found[split].report)}", highlight=False, soft_wrap=True)
    if is_first():
        reports = {split: asdict(one.report) | {"without": one.without} for split, one in found.items()}
        write_json(run / "supervision.json", reports)
    questions = [q for split in found.values() for q in split.questions]
    warm(world.text_encoder, parts["analyzer"], questions, parts.get("vlm"))
    data = QuestionDataModule(
        world.graph,
        found["train"],
        found["val"],
        parts["analyzer"].analyze,
        make(section(settings.states), {}),
        batch_size=settings.batch_size,
        seed=config.seed,
        images=bool(getattr(parts["intent"], "sees", False)),
        by_length=settings.by_length,
    )
    val = [question for question in found["val"].questions if question.topic_entity]
    return data, (val or list(found["val"].questions))[: settings.val_questions]


def chooses(val: Sequence[Question], asked: str | None = None) -> str:
    """The metric that chooses the best checkpoint: path-hit, or the answers' recall where no path is gold.

    Raises:
        ConfigError: another one is asked for, and the val questions have no gold for it.
    """
    gold = any(question.gold_paths for question in val)
    answers = any(question.answers or question.answer_ids for question in val)
    possible = ["path_hit@3"] * gold + ["answer_recall@3", "hits@1"] * answers
    if asked is not None and asked not in possible:
        raise ConfigError(f"training.best_by is {asked}; the val questions have gold for {possible}")
    return asked or ("path_hit@3" if gold else "answer_recall@3")


def _resume(config: DictConfig) -> str | None:
    """The checkpoint whose run goes on; with transfer, weights alone were loaded before."""
    if config.ckpt_path is None or config.transfer:
        return None
    path = resolve(config.ckpt_path)
    check_resumable(read_checkpoint(path))  # Lightning's own message for a damaged file helps nobody
    return str(path)


def in_words(report: SupervisionReport) -> str:
    """What became of the questions, the counts that are not zero."""
    counts = {
        "with gold paths": report.gold,
        "with shortest paths as gold": report.weak,
        "without a path to an answer": report.unreachable,
        "given up as too large": report.too_large,
        "without topic or answer in the graph": report.unsupervised,
        "left out for ids that the graph does not hold": report.skipped,
    }
    return f"{report.questions} questions: " + ", ".join(f"{n} {words}" for words, n in counts.items() if n)
