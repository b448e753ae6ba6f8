"""Two systems on the same questions: paired differences clustered by start entity; and `metrics.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vispath_lit.errors import DataError
from vispath_lit.evaluation.bootstrap import differences
from vispath_lit.evaluation.evaluator import Evaluation
from vispath_lit.evaluation.records import Record
from vispath_lit.evaluation.summary import GROUPS, Table, by_hop, scored, tables
from vispath_lit.progress import track

NOTHING = "given_nothing"


def compare(first: Sequence[Record], second: Sequence[Record], *, seed: int = 0) -> Table:
    """`{"overall": {metric: {"difference", "low", "high", "p"}}, "by_hop": {...}}` of `first - second`.

    Raises:
        DataError: the two are not about the same questions.
    """
    other = {record.id: record for record in second}
    if [record.id for record in first] != [record.id for record in second]:
        raise DataError(
            f"{len(first)} and {len(second)} predictions are not about the same questions in the same order; "
            "evaluate both systems on the same split and limit"
        )
    parts = by_hop(first)
    return {
        "overall": _differences(first, other, seed),
        "by_hop": {hop: _differences(part, other, seed) for hop, part in parts.items()},
    }


def _differences(first: Sequence[Record], other: Mapping[str, Record], seed: int) -> Table:
    found: Table = {}
    for names in GROUPS:
        left, having = scored(first, names)
        right, matched = scored([other[record.id] for record in first], names)
        if [record.id for record in having] != [record.id for record in matched]:
            raise DataError(
                f"the two runs do not have gold for {names[0]} on the same questions; evaluate both anew"
            )
        if having:
            rows = differences(left, right, [record.cluster for record in having], seed=seed)
            found |= {
                name: {"difference": row.mean, "low": row.low, "high": row.high, "p": row.p}
                for name, row in zip(names, rows, strict=True)
            }
    return found


def assemble(
    system: Mapping[str, Evaluation],
    *,
    data: str,
    split: str,
    fingerprints: Mapping[str, str],
    fixed: Mapping[str, Evaluation] | None = None,
    seed: int = 0,
) -> Table:
    """The content of `metrics.json`.

    Args:
        system: protocol to evaluation, of `given_nothing`, `given_start` and `given_start_and_depth`: the
            first is the main table, and all but `given_nothing` become tables under their own name. A main
            table that grants something is named by `main`.
        fixed: the same protocols for the system that it is compared with; its tables go under `fixed`,
            and each table of `system` gets a `comparison` with it.
        fingerprints: of graph, questions, encoders and checkpoint.
        seed: of the bootstrap.

    Raises:
        DataError: no protocol, or the two systems answered different questions.
    """
    found = _protocols(system, fixed or {}, seed)
    found |= {"data": data, "split": split, "fingerprints": dict(fingerprints)}
    if fixed:
        found["fixed"] = _protocols(fixed, {}, seed)
    return found


def _protocols(system: Mapping[str, Evaluation], fixed: Mapping[str, Evaluation], seed: int) -> Table:
    if not system:
        raise DataError("no protocol was tested: there is no main table")
    main, evaluation = next(iter(system.items()))
    made: dict[str, Table] = {}
    for name in track(system, f"{evaluation.system}: intervals"):
        made[name] = tables(system[name], seed=seed)
        if name in fixed:
            made[name]["comparison"] = compare(system[name].records, fixed[name].records, seed=seed)
    if main == NOTHING:
        return made.pop(NOTHING) | dict(made)
    return made[main] | dict(made) | {"main": main}
