"""The house: a layer imports only from the layers before it."""

from __future__ import annotations

import ast
from pathlib import Path

import vispath_lit

PACKAGE = Path(vispath_lit.__file__).parent
LAYERS = (
    "errors",
    "whole",
    "progress",
    "processes",
    "engines",
    "types",
    "protocols",
    "encoders",
    "kg",
    "chat",
    "data",
    "models",
    "search",
    "systems",
    "evaluation",
    "launch",
    "commands",
    "cli",
)


def imported_layers(file: Path) -> set[str]:
    """The layers of the package that a file imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "vispath_lit":
                names = [f"vispath_lit.{alias.name}" for alias in node.names]
            assert node.level == 0, f"{file}: relative import"
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("vispath_lit.")}
    return found


def test_every_import_goes_down() -> None:
    seen = 0
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if layer == "__init__":
            continue
        assert layer in LAYERS, f"{file} belongs to no layer"
        for used in imported_layers(file) - {"__version__"}:
            assert LAYERS.index(used) <= LAYERS.index(layer), f"{file} imports upwards: {used}"
            seen += 1
    assert seen > 10
