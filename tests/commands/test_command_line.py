from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from vispath_lit.cli import app

SLOW = ("torch", "transformers", "pytorch_lightning", "polars", "pyarrow")


def test_help_waits_for_no_large_library() -> None:
    told = f"import sys; import vispath_lit.cli; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_is_told() -> None:
    runner = CliRunner()
    groups = {
        (): ("ask", "predict", "ablate", "kg", "data", "report"),
        ("kg",): ("build", "stats", "search", "import"),
        ("data",): ("atlas", "bench", "show"),
        ("report",): ("show", "compare", "table"),
    }
    for group, names in groups.items():
        shown = runner.invoke(app, [*group, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0, shown.output
        for name in names:
            assert f"│ {name} " in shown.output
            assert runner.invoke(app, [*group, name, "--help"]).exit_code == 0
