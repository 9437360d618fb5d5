"""Reading a command line: positional words and flags that are fields of dataclasses.

tyro prints the help. It does not read the words, because a mistake should be answered with one
sentence, numbers may be written 1e7, and a budget may be given as "10,5" or twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from dataclasses import dataclass
from typing import Any

from acpo import configure
from acpo.errors import UserError, nearest


class HelpAsked(Exception):
    """`--help` was among the words."""


@dataclass
class Words:
    positional: list[str]
    flags: dict[str, Any]
    """Converted values by field name, only those given."""


def parse(argv: list[str], hints: dict[str, Any], positionals: tuple[str, ...], command: str) -> Words:
    """`hints`: the type of each flag. `positionals`: names of the words that come without a flag; a
    last one that ends in "…" takes any number."""
    words = Words([], {})
    texts: dict[str, list[str]] = {}
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        if word in ("-h", "--help"):
            raise HelpAsked
        if not word.startswith("-") or _is_number(word):
            words.positional.append(word)
            continue
        flag, equals, value = word.partition("=")
        name, negated = _known(flag, hints, command)
        if equals:
            given = [value]
        elif hints[name] is bool:
            explicit = not negated and queue and queue[0].lower() in ("true", "false")
            given = [queue.pop(0) if explicit else str(not negated)]
        else:
            given = _values(queue, flag, many=typing.get_origin(hints[name]) is tuple)
        if name in texts and typing.get_origin(hints[name]) is not tuple:
            raise UserError(f"{flag} was given twice.")
        texts.setdefault(name, []).extend(given)
    words.flags = {name: configure.convert(name, hints[name], _text(texts[name])) for name in texts}
    _check_count(words.positional, positionals, command)
    return words


def hints_of(*types: type) -> dict[str, Any]:
    """Flags of dataclasses: the fields, nested ones by dotted name."""
    return {name: hint for one in types for name, hint in configure.fields(one).items()}


def make(kind: type, flags: dict[str, Any]) -> Any:
    """An instance of a dataclass from those flags that are its fields."""
    return kind(**{f.name: flags[f.name] for f in dataclasses.fields(kind) if f.name in flags})


def show_help(kind: Any, prog: str, description: str, default: Any = None) -> None:
    """tyro's page for a dataclass."""
    import tyro  # noqa: PLC0415

    keywords = {} if default is None else {"default": default}
    with contextlib.suppress(SystemExit):
        tyro.cli(kind, prog=prog, description=description, args=["--help"], **keywords)


def _known(flag: str, hints: dict[str, Any], command: str) -> tuple[str, bool]:
    """The field a flag names, and whether it is its `--no-…` form."""
    if not flag.startswith("--"):
        raise UserError(f"There is no flag '{flag}' of `acpo {command}`; flags start with --.")
    name = flag[2:].replace("-", "_")
    if name in hints:
        return name, False
    group, _, last = name.rpartition(".")
    positive = (f"{group}." if group else "") + last.removeprefix("no_")
    if last.startswith("no_") and hints.get(positive) is bool:
        return positive, True
    tails = {known.rpartition(".")[2]: known for known in hints}
    close = tails.get(name) or name
    hint = nearest(close, hints)
    if not hint.startswith("did"):
        hint = f"`acpo {command} --help` lists them all."
    raise UserError(
        f"There is no flag '{flag}' of `acpo {command}`; {hint.replace(chr(39), chr(39) + '--', 1)}"
    )


def _values(queue: list[str], flag: str, many: bool) -> list[str]:
    """The words that belong to a flag: one, or as many as are values."""
    if not queue or (queue[0].startswith("--") and not _is_number(queue[0])):
        raise UserError(f"{flag} needs a value.")
    taken = [queue.pop(0)]
    while many and queue and _is_number(queue[0].split(",")[0].split(":")[0]):
        taken.append(queue.pop(0))
    return taken


def _text(parts: list[str]) -> str:
    return ",".join(parts)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_count(given: list[str], positionals: tuple[str, ...], command: str) -> None:
    open_ended = bool(positionals) and positionals[-1].endswith("…")
    if len(given) > len(positionals) and not open_ended:
        surplus = given[len(positionals)]
        raise UserError(f"`acpo {command}` has no use for '{surplus}'.")


def need(words: Words, index: int, what: str, command: str, example: str) -> str:
    """A positional word that must be there."""
    if len(words.positional) <= index:
        raise UserError(f"`acpo {command}` needs {what}: acpo {command} {example}")
    return words.positional[index]
