"""The command line: one file a command. `main` turns what goes wrong into a sentence."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

from acpo.errors import UserError, nearest

COMMANDS = {
    "train": "train a policy under budgets, or go on with a run",
    "eval": "measure a trained policy on fresh episodes; make a video",
    "compare": "table and pictures of several runs",
    "export": "write a trained policy as ONNX",
    "list": "tasks, algorithms and backends on this machine",
    "bench": "the project's measurements",
    "demo": "a minute of ACPO on PointCircle1",
}

FAILED, INTERRUPTED = 2, 130


def main(argv: list[str] | None = None) -> int:
    """Run one command; gives the exit code."""
    # XLA's start-up notes are not for the user.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        return _dispatch(argv)
    except UserError as error:
        print(f"acpo: {_one_line(str(error))}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"acpo: {error.strerror or error}{where}.", file=sys.stderr)
        return FAILED
    except (AttributeError, ImportError, RuntimeError) as error:
        choice = os.environ.get("MUJOCO_GL")
        frames = traceback.extract_tb(error.__traceback__)
        if not choice or not any(Path(frame.filename).parent.name == "mujoco" for frame in frames):
            raise
        # MuJoCo loads the graphics it is told to use when it is imported, whether it draws or not.
        print(f"acpo: MuJoCo does not load with MUJOCO_GL={choice}: unset it.", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("acpo: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _dispatch(argv: list[str]) -> int:
    if not argv:
        print(usage(), file=sys.stderr)
        return FAILED
    if argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] == "--version":
        from importlib.metadata import version  # noqa: PLC0415

        print(version("acpo"))
        return 0
    if argv[0] not in COMMANDS:
        raise UserError(f"There is no command '{argv[0]}'; {nearest(argv[0], COMMANDS)}")
    module = importlib.import_module(
        f"acpo.cli.{argv[0].replace('eval', 'evaluate').replace('list', 'listing')}"
    )
    return int(module.main(argv[1:]))


def usage() -> str:
    lines = ["usage: acpo COMMAND …", ""]
    lines += [f"  {name:<8} {what}" for name, what in COMMANDS.items()]
    lines += [
        "",
        "acpo train PointGoal1 --algo acpo --budget 25 --steps 1e7 --seeds 3",
        "acpo COMMAND --help explains a command.",
    ]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
