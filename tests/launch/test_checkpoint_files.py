"""Checkpoints are untrusted: damaged, foreign and hostile ones are refused before they are used."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from vispath_lit.errors import CheckpointError
from vispath_lit.launch.checkpoint import FINGERPRINTS, KEY, check_resumable, read_checkpoint, trained_store
from vispath_lit.launch.config import load_config, plain, with_checkpoint

Edit = Callable[[dict[str, Any]], object]


def content() -> dict[str, Any]:
    return {
        "state_dict": {"parts.edge_scorer.weight": torch.ones(64)},
        KEY: {"config": {}, "fingerprints": dict.fromkeys(FINGERPRINTS, "f"), "store": "/nowhere"},
    }


def written(path: Path, edit: Edit = lambda found: None) -> Path:
    found = content()
    edit(found)
    torch.save(found, path)
    return path


class Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_a_whole_one_is_read(tmp_path: Path) -> None:
    found = read_checkpoint(written(tmp_path / "a.ckpt"))
    with pytest.raises(CheckpointError, match="gone"):
        trained_store(found)


def test_code_in_it_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    inside = written(tmp_path / "a.ckpt", lambda found: found.update(extra=Hostile(mark)))
    bare = tmp_path / "b.ckpt"
    bare.write_bytes(pickle.dumps(Hostile(mark)))
    for file in (inside, bare):
        with pytest.raises(CheckpointError):
            read_checkpoint(file)
    assert not mark.exists()


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\x80\x02}q\x00.", bytes(range(256)) * 9])
def test_another_file_is_no_checkpoint(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.ckpt"
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged"):
        read_checkpoint(file)


@pytest.mark.parametrize(
    "program", [b"\x80\x02.", b"\x80\x02]q", b"\x80\x02}(K\x01u.", b"\x80\x02G\x00.", b"\x80\x02h\x05.", b""]
)
def test_a_file_that_breaks_its_reader_is_damaged(tmp_path: Path, program: bytes) -> None:
    written(tmp_path / "a.ckpt")
    with zipfile.ZipFile(tmp_path / "a.ckpt") as good, zipfile.ZipFile(tmp_path / "b.ckpt", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, program if name.endswith("data.pkl") else good.read(name))
    with pytest.raises(CheckpointError, match=r"b\.ckpt is damaged"):
        read_checkpoint(tmp_path / "b.ckpt")


def test_cut_and_altered_bytes_are_found(tmp_path: Path) -> None:
    data = written(tmp_path / "a.ckpt").read_bytes()
    weights = data.index(torch.ones(64).numpy().tobytes())
    altered = data[:weights] + b"\x01" + data[weights + 1 :]
    for damaged in (data[: len(data) // 2], data[:-1], altered):
        file = tmp_path / "damaged.ckpt"
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            read_checkpoint(file)


def test_a_folder_or_nothing_is_no_checkpoint(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(CheckpointError, match="no checkpoint at"):
            read_checkpoint(path)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda found: found.pop(KEY), "not of VisPath-Lit"),
        (lambda found: found.pop("state_dict"), "not of VisPath-Lit"),
        (lambda found: found.update({KEY: "text"}), "no mapping"),
        (lambda found: found.update({KEY: None}), "no mapping"),
        (lambda found: found[KEY].pop("config"), "config"),
        (lambda found: found[KEY].update(config=[1]), "config"),
        (lambda found: found[KEY].pop("store"), "store"),
        (lambda found: found[KEY].update(store=5), "store"),
        (lambda found: found[KEY].update(fingerprints="x"), "fingerprints"),
        (lambda found: found[KEY].update(fingerprints={}), r"fingerprints\.graph"),
        (lambda found: found.update(state_dict="x"), "state_dict"),
        (lambda found: found["state_dict"].update({5: torch.ones(1)}), "state_dict holds 5"),
        (lambda found: found["state_dict"].update(a=1), "state_dict holds 'a'"),
        (lambda found: found["state_dict"].update(a=torch.tensor(float("nan"))), "not finite"),
    ],
)
def test_what_is_missing_or_of_another_type_is_named(tmp_path: Path, edit: Edit, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(written(tmp_path / "a.ckpt", edit))


@pytest.mark.parametrize(
    "target",
    [
        "subprocess.Popen",
        "os.system",
        "vispath_lit.launch.fit.Path",
        "vispath_lit.models.nothing.Part",
        "vispath_lit.launch.train.train",
        "vispath_lit..Part",
        "${oc.env:HOME}",
        5,
    ],
)
@pytest.mark.parametrize("place", ["text_encoder", "parts"])
def test_its_config_cannot_name_foreign_code(target: object, place: str) -> None:
    run = load_config("eval", ["run_dir=x", "data.source=null"])
    saved = plain(load_config("eval", ["run_dir=x"]))
    node = saved[place]["judge"] if place == "parts" else saved[place]
    node["deep"] = [{"_target_": target}]
    with pytest.raises(CheckpointError, match="no class of this package"):
        with_checkpoint(run, saved, ())


def test_a_class_that_the_user_names_is_trusted() -> None:
    override = "parts.judge._target_=collections.Counter"
    saved = plain(load_config("eval", ["run_dir=x", override]))
    with pytest.raises(CheckpointError, match=r"collections\.Counter"):
        with_checkpoint(load_config("eval", ["run_dir=x"]), saved, ())
    merged = with_checkpoint(load_config("eval", ["run_dir=x", override]), saved, [override])
    assert merged.parts.judge._target_ == "collections.Counter"


@pytest.mark.parametrize("saved", [{}, {"parts": "x"}, {"parts": None}])
def test_a_config_without_a_system_is_refused(saved: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="has no"):
        with_checkpoint(load_config("eval", ["run_dir=x"]), saved, ())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epoch", "x"),
        ("global_step", None),
        ("loops", 3),
        ("optimizer_states", "x"),
        ("optimizer_states", []),
        ("lr_schedulers", [1]),
        ("QuestionDataModule", {}),
    ],
)
def test_weights_without_their_training_cannot_be_resumed(key: str, value: object) -> None:
    whole: dict[str, Any] = {"epoch": 0, "global_step": 3, "loops": {}}
    whole |= {"optimizer_states": [{}], "lr_schedulers": [{}], "QuestionDataModule": {"epoch": 0, "done": 3}}
    check_resumable(whole)
    with pytest.raises(CheckpointError, match=f"{key} is missing or damaged.*transfer=true"):
        check_resumable(whole | {key: value})
