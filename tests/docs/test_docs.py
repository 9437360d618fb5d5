"""The documentation is true: its blocks of code run, its commands parse, its tables are up to date."""

import importlib
import inspect
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from acpo import algorithms, api, cli, configure
from acpo.cli import arguments
from acpo.runs.session import RunOptions
from acpo.tasks import registry

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ABOUT_SETTINGS = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
EPISODES = "2"
TINY = {
    "steps": "800",
    "rollout.envs": "4",
    "rollout.batch": "400",
    "ppo.minibatch": "100",
    "ppo.passes": "1",
    "ppo.learning_rate": "1e-3",
    "network.hidden": "8",
}
SHORT = RunOptions(quiet=True, tensorboard=False, plots=False)


def by_name(pages):
    return pytest.mark.parametrize("page", pages, ids=[page.name for page in pages])


def blocks(text):
    """(language, file, code) of every fenced block; most have no file."""
    return re.findall(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text):
    """Every `acpo …` that a reader could type, as words."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = re.findall(r"^(?: {4})?(acpo .*)$", text, re.MULTILINE)
    for shown in lines + re.findall(r"`(acpo [^`]*)`", text):
        words = shlex.split(re.sub(r"[][]", "", shown), comments=True)[1:]
        if words[0] not in ("COMMAND", "…"):
            yield words


def small(words):
    """A command with the sizes of a test: two iterations, a few episodes, budgets wide enough to keep."""
    command, *rest = words
    if command == "eval":
        return [command, *rest, "--episodes", EPISODES] if "--episodes" not in rest else [
            command, *(EPISODES if before == "--episodes" else word for before, word in pairs(rest))
        ]  # fmt: skip
    if command != "train":
        return words
    kept = [command]
    for before, word in pairs(rest):
        if before == "--budget":
            kept.append(",".join(f"{100 * float(budget):g}" for budget in word.split(",")))
        elif not {name(word), name(before)} & set(TINY):
            kept.append(word)
    given = [word for field, value in TINY.items() for word in (f"--{field}", value)]
    return [*kept, *given, "--quiet", "--no-tensorboard", "--no-plots"]


def pairs(words):
    return zip(["", *words], words, strict=False)


def name(flag):
    return flag[2:].replace("-", "_") if flag.startswith("--") else ""


@pytest.fixture(scope="module", autouse=True)
def compile_quickly(tmp_path_factory):
    """Runs that differ in their names only are the same program, and none of them is long."""
    settings = {
        "jax_disable_most_optimizations": True,
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
    }
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Somebody in an empty directory whose runs are short; gives the names their Python has."""
    train, evaluate = api.train, api.evaluate
    tiny = {field: value for field, value in TINY.items() if field != "steps"}

    def train_briefly(task, **asked):
        asked = {field.replace("__", "."): value for field, value in asked.items() if field != "seeds"}
        own = {field: value for field, value in asked.items() if field not in TINY}
        return train(task, **own, **tiny, steps=TINY["steps"], options=SHORT)

    monkeypatch.setattr(api, "train", train_briefly)
    monkeypatch.setattr(api, "evaluate", lambda run, episodes, *rest: evaluate(run, int(EPISODES), *rest))
    monkeypatch.setattr(algorithms, "ALGORITHMS", dict(algorithms.ALGORITHMS))
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return {"__name__": "page"}


def run_page(text, names):
    """What a reader does: make the files, type the commands, run the Python; in the page's order."""
    for language, file, code in blocks(text):
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(code)
        elif language == "sh":
            for words in commands(code):
                assert cli.main(small(words)) == 0, words
        elif language == "python":
            exec(compile(code, "page", "exec"), names)


def test_own_environments(reader, capsys):
    run_page((ROOT / "docs/own-environments.md").read_text(), reader)
    said = capsys.readouterr().out
    assert "TaskSpec" in said and "costs=('speeding', 'fuel')" in said
    budgets = [api.load(f"runs/{run}").config.budget for run in ("cart", "cart-again", "cart-python")]
    assert budgets == [(1000.0, 500.0), (1000.0, 500.0), (10.0, 5.0)]
    assert reader["run"].spec.costs == ("speeding", "fuel")
    assert reader["action"].shape == (1,) and set(reader["info"]["costs"]) > {0.0}
    policy = reader["run"].policy(np.zeros((1, 2)))
    np.testing.assert_allclose(
        reader["session"].run(["action"], {"observation": np.zeros((1, 2), np.float32)})[0], policy, atol=1e-5
    )
    assert Path("cart.onnx").exists()


def test_contributing(reader, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests/solvers"))
    sections = (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")
    ran = []
    for section in sections:
        names = dict(reader)
        run_page(section, names)
        for test in [value for key, value in names.items() if key.startswith("test_")]:
            test()
            ran.append(section.split("\n")[0])
        if "run" in names:
            assert names["run"].metrics["budget_speeding"].tolist() in (
                [20.0, 19.0],
                [19.0, 18.1],
                [20.0, 20.0],
            )
    assert ran == ["A solver", "A schedule", "A task"]


def test_readme(reader):
    text = (ROOT / "README.md").read_text().replace('"PointGoal1"', '"Tabular"')
    train, use = (code for language, _, code in blocks(text) if language == "python")
    exec(train, reader)
    shutil.copytree("runs/goal-python", "runs/goal")
    reader["observation"] = np.zeros(reader["run"].spec.observation_size)
    exec(use, reader)
    assert reader["action"] == reader["run"].policies()[0](reader["observation"])


@by_name(PAGES)
def test_python_is_python(page):
    for language, _, code in blocks(page.read_text()):
        if language == "python":
            compile(code, page.name, "exec")


class Parsed(Exception):
    """Stops a command once its words are understood."""


@by_name(PAGES)
def test_commands_parse(page, monkeypatch):
    parse = arguments.parse

    def only_parse(*given):
        raise Parsed(parse(*given))

    monkeypatch.setattr(arguments, "parse", only_parse)
    for words in commands(page.read_text()):
        command, *rest = [word for word in words if word not in ("--help", "--version")]
        assert command in cli.COMMANDS, words
        module = inspect.getmodule(importlib.import_module(f"acpo.cli.{modules()[command]}"))
        with pytest.raises(Parsed) as parsed:
            module.main(rest)
        if command == "train":
            settings_exist(parsed.value.args[0])


def modules():
    return {command: command for command in cli.COMMANDS} | {"eval": "evaluate", "list": "listing"}


def settings_exist(words):
    """The algorithm reads the fields given, and their values are possible."""
    flags = words.flags
    changes = {key: value for key, value in flags.items() if key in configure.FIELDS}
    changes = {key: value for key, value in changes.items() if not key.startswith(("rollout.", "algo"))}
    algo = flags.get("algo", "acpo") if flags.get("algo") != "NAME" else "acpo"
    task = (*words.positional, "PointGoal1")[0]
    if ":" not in task and task not in ("TASK", "PointGoal1"):
        assert task in registry.names()
    size = {"rollout.batch": 10**9, "rollout.envs": 1}
    configure.build(algo, task, size, flags.get("preset", "default"), {**changes, **size})


@by_name(ABOUT_SETTINGS)
def test_fields_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    groups = {field.partition(".")[0] for field in configure.FIELDS if "." in field}
    for span in re.findall(r"`([^`\n]*)`", text):
        for word in span.split():
            field = word.removeprefix("--").replace("-", "_")
            if re.fullmatch(r"\w+\.\w+", field) and field.partition(".")[0] in groups:
                assert field in configure.FIELDS, word


def test_every_setting_and_algorithm_is_described():
    written = runpy.run_path(str(ROOT / "docs/make_fields.py"))["written"]
    page = (ROOT / "docs/algorithms.md").read_text()
    missing = [field for field in configure.FIELDS if f"`{field}`" not in page]
    assert not missing
    assert written(page) == page, "run: python docs/make_fields.py"
    readme = (ROOT / "README.md").read_text()
    assert [algo for algo in algorithms.ALGORITHMS if f"`{algo}`" not in readme] == []


@by_name(PAGES)
def test_links(page):
    """What a comment RESULT on the line or the one before announces may be missing."""
    before = ""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in text.split("\n"):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            file, _, anchor = target.partition("#")
            if "://" in file or "<!-- RESULT" in before + line:
                continue
            path = (page.parent / file) if file else page
            assert path.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
                slugs = [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]
                assert anchor in slugs, f"{page.name}: {target}"
        before = line


def test_the_map_names_every_part():
    page = (ROOT / "docs/architecture.md").read_text()
    source = ROOT / "src/acpo"
    parts = [path.name for path in source.glob("*.py")]
    parts += [f"{path.parent.name}/" for path in source.glob("*/__init__.py")]
    parts += [f"{path.parent.name}/" for path in source.glob("tasks/*/__init__.py")]
    assert [part for part in parts if part not in page] == []
