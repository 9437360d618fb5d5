"""Writes the generated tables of docs/algorithms.md: `python docs/make_fields.py`.

A test compares them with `acpo.config` and `acpo.algorithms`, so they cannot go stale unnoticed.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections import Counter
from pathlib import Path
from typing import Any

from acpo import config, configure
from acpo.algorithms import ALGORITHMS, Algorithm
from acpo.schedules import fixed

PAGE = Path(__file__).parent / "algorithms.md"
BEGIN, END = "<!-- {name}: written by docs/make_fields.py -->", "<!-- end of {name} -->"


def sentences(kind: type) -> dict[str, str]:
    """The sentence under each field of a dataclass; a field without one is missing."""
    (body,) = (
        node for node in ast.walk(ast.parse(inspect.getsource(kind))) if isinstance(node, ast.ClassDef)
    )
    found: dict[str, str] = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[node.target.id] = " ".join(str(after.value.value).split())
    return found


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`" if value else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value:g}`" if isinstance(value, (int, float)) else f"`{value}`"


def paper(name: str, domain: configure.Domain) -> str:
    """What `--preset paper` sets a field to, the algorithms that differ from most in brackets."""
    values = {
        algo: shown(settings[name])
        for algo in ALGORITHMS
        if name in (settings := configure.paper(algo, domain))
    }
    if not values:
        return ""
    most = Counter(values.values()).most_common(1)[0][0]
    others: dict[str, list[str]] = {}
    for algo, value in values.items():
        if value != most:
            others.setdefault(value, []).append(algo)
    return most + "".join(f" ({', '.join(algos)}: {value})" for value, algos in others.items())


def columns(name: str, default: Any) -> tuple[str, str, str]:
    """Default, the preset's value on most tasks, the preset's value on the Go1 where it is another."""
    navigation, quadruped = paper(name, "navigation"), paper(name, "quadruped")
    value = "" if default is dataclasses.MISSING else shown(default)
    return value, navigation, "" if quadruped == navigation else quadruped


def group(title: str, kind: type, prefix: str) -> list[str]:
    heading = inspect.getdoc(kind) or ""
    readers = [a.name for a in ALGORITHMS.values() if prefix[:-1] in a.sections]
    lines = [f"### {title}", "", " ".join(heading.split())]
    if prefix[:-1] in configure.SPECIFIC:
        lines[-1] += f" Read by {', '.join(readers)}."
    lines += ["", "| field | default | paper | paper, Go1 | |", "|---|---|---|---|---|"]
    said = sentences(kind)
    for one in dataclasses.fields(kind):
        if one.default_factory is not dataclasses.MISSING:
            continue
        row = [f"`{prefix}{one.name}`", *columns(prefix + one.name, one.default), said[one.name]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return [*lines, ""]


def fields() -> str:
    lines = group("The run", config.Config, "")
    for name, kind in typing.get_type_hints(config.Config).items():
        if dataclasses.is_dataclass(kind):
            lines += group(name, typing.cast(type, kind), f"{name}.")
    return "\n".join(lines).strip()


def algorithms() -> str:
    def schedule(one: Algorithm) -> str:
        return "no limits" if one.schedule is fixed.UNLIMITED else _module(one.schedule.update)

    lines = ["| | schedule | solver | |", "|---|---|---|---|"]
    lines += [
        f"| `{one.name}` | {schedule(one)} | {_module(one.solver.update)} | {one.summary} |"
        for one in ALGORITHMS.values()
    ]
    return "\n".join(lines)


def _module(function: Any) -> str:
    return function.__module__.rpartition(".")[2].replace("_", " ")


def written(page: str) -> str:
    """The page with every generated part as it should be now."""
    for name, make in (("fields", fields), ("algorithms", algorithms)):
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{PAGE.name} has lost the marks around its {name}.")
        page = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
