"""Plugins: names, plugins that are wrong in every way that a file can be, and where they are looked for."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
import warm
from configurations import changed

from workflow_scripts import plugins, registry
from workflow_scripts.entry_names import typed
from workflow_scripts.errors import InputError
from workflow_scripts.run import findings
from workflow_scripts.run.config import _adapter, dumped, load, read
from workflow_scripts.run.config_files import plugins_of
from workflow_scripts.tasks.plan import Plans

NOISE = """from crossgap import noise


@noise("{name}", label="as it is", asks="Does it help?")
def same(words):
    return words
"""


@pytest.fixture(autouse=True)
def forgotten(tmp_path, monkeypatch):
    """No plugin stays for other tests; modules of a test are looked for in its folder."""
    monkeypatch.syspath_prepend(tmp_path)
    yield
    plugins.forget()


def written(path, content=None, name="same"):
    path.parent.mkdir(exist_ok=True)
    path.write_text(NOISE.format(name=name) if content is None else content, encoding="utf-8")
    return str(path)


def refused(*names):
    """What is said of plugins that are refused; nothing of them is left."""
    with pytest.raises(InputError) as said:
        plugins.load(names)
    assert "\n" not in str(said.value)
    return str(said.value)


def test_a_file_brings_an_entry(tmp_path):
    path = written(tmp_path / "mine.py")
    plugins.load([path])
    assert registry.entry("noise", "same").plugin == path and "same" in registry.entries("noise")
    (plugin,) = plugins.loaded().values()
    assert plugin.entries == (("noise", "same"),) and [str(file) for file in plugin.files] == [path]
    assert plugins.files_of(registry.entry("noise", "same"), registry.entry("noise", "mask"), None) == [path]
    plugins.forget()
    assert "same" not in registry.entries("noise") and not plugins.loaded()


def test_what_stands_in_provenance_is_what_was_loaded(tmp_path):
    path = tmp_path / "mine.py"
    plugins.load([written(path)])
    before = plugins.described()
    path.write_text("# edited while a job runs\n", encoding="utf-8")
    assert plugins.described() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (NOISE.format(name="codeswitch"), "noise 'codeswitch': the name is taken by Crossgap itself; choose another one"),
        (NOISE.format(name="task"), "noise 'task': the name means something else; choose another one"),
        (NOISE.format(name="a b"), "noise 'a b': names are letters, digits, - and _ only"),
        (NOISE.format(name="a.b"), "noise 'a.b': names are letters, digits, - and _ only"),
        (NOISE.format(name="-a"), "noise '-a': names are letters, digits, - and _ only"),
        (NOISE.format(name="same") * 2, "noise 'same': the plugin has two of this name"),
        (NOISE.format(name="denoising"), "noise 'denoising': Crossgap itself has the objective 'denoising'; choose another name"),
        (
            NOISE.format(name="same").replace("(words)", "(words, window=3)"),
            "noise 'same' asks for `window`; a noise can ask for words, draw",
        ),
        (NOISE.format(name="same").replace("(words)", "(words, settings)"), "noise 'same' asks for `settings`, but has none"),
        (
            NOISE.format(name="same").replace("asks=", "settings=dict, asks="),
            "`settings` is <class 'dict'>; it must be a class with @dataclass",
        ),
        (NOISE.format(name="same").replace("asks=", "lexicon='mine', asks="), "has lexicon='mine'; write 'own' or 'scrambled'"),
        (
            "from crossgap import metric\n\n\n@metric('COMET')\ndef mine(hypothesis):\n    return 1\n",
            "metric 'COMET': the name means something else",
        ),
        ("from crossgap import metric\n\n\n@metric('a\\tb')\ndef mine(hypothesis):\n    return 1\n", "a name has no line breaks, tabs"),
        ("from crossgap import nose\n", "module 'crossgap' has no attribute 'nose'; it has"),
        ("x = 1\n", "registers nothing; decorate a function of it"),
        ("", "registers nothing; decorate a function of it"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_one_line(content, said, tmp_path):
    path = written(tmp_path / "mine.py", content)
    found = refused(path)
    assert found.startswith(f"plugin {path}: ") or "cannot import name" in found
    if "crossgap import nose" in content:
        assert "line 1 of" in found and "nose" in found
    else:
        assert said in found
    assert not plugins.loaded() and "same" not in registry.entries("noise")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\n1 / 0\n", "line 2 of {path}, `1 / 0`: ZeroDivisionError: division by zero"),
        ("import json\n\njson.loads('{')\n", "line 3 of {path}, `json.loads('{{')`: JSONDecodeError: Expecting property name"),
        ("import not_there\n", "line 1 of {path}, `import not_there`: ModuleNotFoundError: No module named 'not_there'"),
        ("import sys\nsys.exit()\n", "line 2 of {path}, `sys.exit()`: SystemExit"),
        ("raise ValueError('one\\ntwo')\n", "line 1 of {path}, `raise ValueError('one\\ntwo')`: ValueError: one"),
        ("def f(:\n    pass\n", "line 1 of {path}: "),
        ("x = 1\n  y = 2\n", "line 2 of {path}: unexpected indent"),
    ],
)
def test_a_plugin_that_fails_says_file_line_and_sentence(content, said, tmp_path):
    path = written(tmp_path / "mine.py", content)
    assert refused(path).startswith(f"plugin {path}: " + said.format(path=path))


def test_a_plugin_that_fails_after_its_first_entry_leaves_nothing(tmp_path):
    path = tmp_path / "mine.py"
    refused(written(path, NOISE.format(name="same") + "1 / 0\n"))
    assert "same" not in registry.entries("noise")
    plugins.load([written(path)])
    assert "same" in registry.entries("noise")


def test_a_plugin_in_another_encoding_is_one_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes("x = 'é'\n".encode("latin-1"))
    assert str(path) in refused(str(path))
    path.write_bytes(b"x = 1\0\n")
    assert "null bytes" in refused(str(path))


def test_an_interrupt_stays_one(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        plugins.load([written(tmp_path / "mine.py", "raise KeyboardInterrupt\n")])


@pytest.mark.parametrize("name", ["nowhere.py", "some/nowhere.py", "some/folder"])
def test_a_file_that_is_not_there(name, tmp_path):
    assert refused(str(tmp_path / name)).endswith(f"there is no such file (looked for {tmp_path / name})")


@pytest.mark.parametrize("name", ["not_there", "not_there.either", "a b", ".mine"])
def test_a_module_that_is_not_there(name):
    assert refused(name).startswith(f"plugin {name}: is neither a file (which ends in .py), nor a module")


def test_a_plugin_without_a_name():
    assert refused("") == "plugin '': has no name; write the file's name, or leave it out"
    assert "codeswitch" in registry.entries("noise")


def test_what_a_plugin_imports_of_ours_stays_ours(tmp_path):
    """In a process of its own, in which the plugin is the first to import it."""
    path = written(tmp_path / "mine.py", "import workflow_scripts.evidence.scores\n" + NOISE.format(name="same"))
    script = (
        f"from workflow_scripts import plugins, registry\nplugins.load([{path!r}])\n"
        "print(repr(registry.entry('metric', 'BLEU').plugin), [plugin.entries for plugin in plugins.loaded().values()])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "'' [(('noise', 'same'),)]", done.stderr


def test_one_file_by_two_paths_is_one_plugin(tmp_path, monkeypatch):
    path = written(tmp_path / "folder/mine.py")
    (tmp_path / "link.py").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    plugins.load([path, "folder/mine.py", "./folder/../folder/mine.py", "link.py", "~/link.py"])
    assert len(plugins.loaded()) == 1


def test_two_plugins_cannot_take_one_name(tmp_path):
    first, second = (written(tmp_path / f"{name}.py") for name in ("first", "second"))
    assert refused(first, second).endswith(f"noise 'same': the name is taken by {first}; choose another one")


def test_a_module_a_package_and_an_entry_point(tmp_path):
    written(tmp_path / "plain_module.py", name="plain")
    written(tmp_path / "some_package/__init__.py", "from some_package import other\n")
    other = written(tmp_path / "some_package/other.py", name="packed")
    words = written(tmp_path / "some_package/words.tsv", "a\tb\n")
    written(tmp_path / "some_package/.hidden/notes", "")
    deep = [written(tmp_path / f"deep_package/{name}.py", "") for name in ("__init__", "helpers")]
    deep += [written(tmp_path / "deep_package/bridges/__init__.py", ""), written(tmp_path / "deep_package/bridges/mine.py", name="deep")]
    written(tmp_path / "a.file.py", name="dotted")
    written(tmp_path / "pointed_at.py", name="pointed")
    written(tmp_path / "shuffle-1.dist-info/entry_points.txt", "[crossgap.plugins]\nshuffle = pointed_at\n")
    written(tmp_path / "shuffle-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: shuffle\nVersion: 1\n")
    for _ in range(2):  # again, after all was forgotten
        plugins.load(["plain_module", "some_package", "shuffle", "deep_package.bridges.mine", str(tmp_path / "a.file.py")])
        assert {"plain", "packed", "pointed"} <= {*registry.entries("noise")}
        # all files of a package count, whatever of them it reads
        assert plugins.files_of(registry.entry("noise", "packed")) == [str(tmp_path / "some_package/__init__.py"), other, words]
        # what is nearer may import what is further up
        assert {*plugins.files_of(registry.entry("noise", "deep"))} == {*deep}
        for name, file in (("plain", "plain_module.py"), ("pointed", "pointed_at.py"), ("dotted", "a.file.py")):
            assert plugins.files_of(registry.entry("noise", name)) == [str(tmp_path / file)]
        plugins.forget()


@pytest.mark.parametrize("names", [("one", "two"), ("two", "one")])
def test_modules_of_a_package_may_import_each_other_in_either_order(tmp_path, names):
    package = f"pair_{names[0]}"
    written(tmp_path / f"{package}/__init__.py", "")
    written(tmp_path / f"{package}/one.py", name="first")
    written(tmp_path / f"{package}/two.py", f"import {package}.one\n" + NOISE.format(name="second"))
    plugins.load([f"{package}.{name}" for name in names])
    assert {"first", "second"} <= {*registry.entries("noise")}


def test_files_that_settings_name_count(tmp_path):
    path = written(tmp_path / "mine.py")
    plugins.load([path])
    words = written(tmp_path / "words.tsv", "")
    given = {"dictionary": {"de": words}, "others": ["nowhere.tsv", "x" * 5000, "", "a\0b"], "rate": 0.3}
    assert plugins.files_of(registry.entry("noise", "same"), settings=given) == [path, words]
    assert plugins.files_of(registry.entry("noise", "mask"), settings=given) == []


def test_what_is_trained_knows_its_plugin_and_the_content_of_files_that_settings_name(tmp_path):
    plugins.load([written(tmp_path / "mine.py")])
    own, words, found = registry.entry("noise", "same"), tmp_path / "words.tsv", []
    for content in ("a", "b", "b"):
        found.append(plugins.trained_by("noise", own, {"words": written(words, content), "rate": 0.3}))
    assert found[0] != found[1] == found[2] and found[0].keys() == {"noise_plugin", "noise_files"}
    # without such files there is no key for them, so that what was trained before is not trained anew
    assert plugins.trained_by("noise", own, {"words": "nowhere.tsv"}) == {"noise_plugin": plugins.sha256_of(own)}
    assert plugins.trained_by("noise", registry.entry("noise", "mask"), {"words": str(words)}) == {}


def test_a_module_may_lie_in_the_folder_of_the_run_where_nothing_else_is_found(tmp_path, monkeypatch):
    written(tmp_path / "run/near_module.py", name="near")
    written(tmp_path / "run/near_package/__init__.py", "")
    written(tmp_path / "run/near_package/bridges.py", "import near_package.other\n" + NOISE.format(name="within"))
    written(tmp_path / "run/near_package/other.py", "")
    written(tmp_path / "run/broken_module.py", "import near_module_of_nobody\n")
    monkeypatch.chdir(tmp_path / "run")
    path = [*sys.path]
    for _ in range(2):
        plugins.load(["near_module", "near_package.bridges"])
        assert {"near", "within"} <= {*registry.entries("noise")} and sys.path == path
        plugins.forget()
    assert "No module named 'near_module_of_nobody'" in refused("broken_module") and "broken_module" not in sys.modules
    assert "is neither a file" in refused("module_of_nobody")


def test_jobs_learn_their_plugins_from_the_environment(tmp_path, monkeypatch):
    path = written(tmp_path / "12:00, {it's}/mine.py")
    monkeypatch.setenv(plugins.VARIABLE, json.dumps([path]))
    plugins.load_from_environment()
    assert registry.entry("noise", "same").plugin == path
    for wrong in (path, "3", "[3]"):
        monkeypatch.setenv(plugins.VARIABLE, wrong)
        with pytest.raises(InputError, match=r'CROSSGAP_PLUGINS: is a JSON list of names, like \["my_bridge.py"\], got '):
            plugins.load_from_environment()


def test_a_module_that_fails_says_its_line(tmp_path):
    written(tmp_path / "some_package/__init__.py", "")
    path = written(tmp_path / "some_package/broken.py", "import json\njson.loads('{')\n")
    assert f"line 2 of {path}, `json.loads('{{')`" in refused("some_package.broken")


@pytest.mark.parametrize("line", ["import torch", "import torch.nn as nn", "from torch import nn", "import torch as t"])
def test_preflight_names_a_plugin_that_imports_torch(line, tmp_path):
    """In a process of its own, in which nothing else has loaded it; planning puts it off."""
    path = written(tmp_path / "mine.py", f"{line}\n{NOISE.format(name='same')}")
    light = written(tmp_path / "light.py", NOISE.format(name="light").replace("    return", "    import torch\n    return"))
    script = (
        "from workflow_scripts import lazily\nlazily.put_off()\nfrom workflow_scripts import plugins\n"
        f"plugins.load({[light, path]!r})\nprint([plugin.heavy for plugin in plugins.loaded().values()])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[(), ('torch',)]"], done.stderr


def test_preflight_says_what_a_plugin_brings(tmp_path):
    plugins.load([written(tmp_path / "mine.py")])
    (finding,) = findings.brought()
    assert (finding.verdict, finding.said) == ("ok", "brings noise same")


def test_an_arm_on_a_plugins_noise_that_is_not_run_is_told(tmp_path):
    plugins.load([written(tmp_path / "mine.py")])
    raw = changed("arms/mine", [{"data": "same", "updates": 10, "training": {"checkpoint": "last"}}, {"data": "task", "updates": 4190}])
    (finding,) = findings.not_trained(Plans(load(raw)))
    assert (finding.verdict, finding.about) == ("note", "arms.mine") and "is not run; name it in run.arms" in finding.said
    raw["run"]["arms"] = ["finetune", "mine"]
    assert [*findings.not_trained(Plans(load(raw)))] == []


def test_plugins_of_recipes_add_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("one", "two", "home"):
        written(tmp_path / folder / "mine.py", name=folder)
    written(tmp_path / "one/a.yaml", "plugins: [mine.py, some_module]\n")
    written(tmp_path / "two/b.yaml", "plugins: [mine.py, ~/mine.py, some_module]\n")
    written(tmp_path / "c.yaml", "run: {}\n")
    files = [tmp_path / "one/a.yaml", tmp_path / "two/b.yaml", tmp_path / "c.yaml"]
    found = plugins_of({}, files, {"plugins": ["one/mine.py", "another"]})
    assert found == ["one/mine.py", "some_module", "two/mine.py", "home/mine.py", "another"]
    # a module of another workflow has its configuration without files
    assert plugins_of({"plugins": ["one/mine.py"]}, [], {}) == ["one/mine.py"]


@pytest.mark.parametrize("value", ["mine.py", {"mine": "py"}, ["mine.py", 3], 3])
def test_plugins_are_a_list(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "mine.py")
    written(tmp_path / "other.py", name="other")
    written(tmp_path / "a.yaml", "plugins: [other.py]\n")
    for ours, files in (({"plugins": value}, [tmp_path / "a.yaml"]), ({}, [])):
        with pytest.raises(InputError, match=r"plugins: wants a list of names, like \[my_bridge.py\], got"):
            plugins_of({"plugins": value}, files, ours)


def test_a_configuration_knows_what_plugins_bring(tmp_path):
    path = written(tmp_path / "mine.py")
    raw = changed("arms/csr/0/data", "same") | {"plugins": [path]}
    assert load(raw).arms["csr"][0].restores.plugin == path
    plugins.forget()
    del raw["plugins"]
    with pytest.raises(InputError, match=r"arms\.csr\.0\.data: .*'same'"):
        load(raw)


def test_results_of_a_plugin_that_is_gone_are_one_line(tmp_path):
    path = written(tmp_path / "mine.py")
    made = tmp_path / "configuration.json"
    made.write_text(dumped(load(changed("arms/csr/0/data", "same") | {"plugins": [path]})), encoding="utf-8")
    plugins.forget()
    assert read(made).arms["csr"][0].restores.name == "same"
    plugins.forget()
    (tmp_path / "mine.py").unlink()
    flags = {"results": tmp_path, "html": tmp_path / "report.html", "scores": tmp_path / "scores.tsv", "configuration": made}
    command = [
        sys.executable,
        "-m",
        "workflow_scripts.report",
        *(str(part) for name, value in flags.items() for part in (f"--{name}", value)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == f"error: plugin {path}: there is no such file (looked for {path})\n"


def test_the_schema_has_the_names_of_noises(tmp_path):
    def names():
        return _adapter().json_schema()["$defs"]["Phase"]["properties"]["data"]["enum"]

    noises = ["codeswitch", "mask", "random", "plain_text", "switched_text", "released"]
    objectives = ["denoising", "mlm", "next_piece", "translation", "veco", "span-corruption", "alternating"]
    assert names() == [*noises, *objectives, "task"]
    plugins.load([written(tmp_path / "mine.py")])
    assert names() == [*noises, "same", *objectives, "task"]


def test_a_command_lists_noises_and_refuses_others(tmp_path):
    command = [warm.python(), "-m", "workflow_scripts.noise.codeswitch", "show", "--plugins", written(tmp_path / "mine.py")]
    done = warm.run([*command, "--help"])
    assert "{codeswitch,mask,random,plain_text,switched_text,released,same}" in "".join(done.stdout.split()), done.stderr
    done = warm.run([*command, "--text", "x", "--language", "de", "--kind", "sane"])
    assert done.returncode == 1 and done.stderr.splitlines() == ["error: there is no noise 'sane', did you mean 'same'?"]


def test_a_plugin_may_be_a_control_of_what_is_there_alone(tmp_path):
    content = NOISE.format(name="same").replace("asks=", "control_of='codeswich', asks=")
    raw = changed("arms/csr/0/data", "same") | {"plugins": [written(tmp_path / "mine.py", content)]}
    with pytest.raises(InputError, match="plugins: noise same: 'codeswich' is not defined, did you mean 'codeswitch'"):
        load(raw)


@pytest.mark.parametrize(("of", "said"), [("Lisst[int]", "name 'Lisst' is not defined"), ("Later", "name 'Later' is not defined")])
def test_types_of_settings_that_cannot_be_read_are_one_line(of, said, tmp_path):
    settings = f"from dataclasses import dataclass\n\n\n@dataclass\nclass Window:\n    right: int = 3\n    size: '{of}' = None\n\n\n"
    content = settings + NOISE.format(name="same").replace("asks=", "settings=Window, asks=")
    assert f"noise 'same': the type of Window.size cannot be read, NameError: {said}" in refused(written(tmp_path / "mine.py", content))
    assert "same" not in registry.entries("noise")
    plugins.load([written(tmp_path / "other.py", content + f"\n\n{of.partition('[')[0]} = list\n")])


@dataclass
class Nested:
    rate: Annotated[float, "any"] = 0.1
    inner: "Nested | None" = None


@pytest.mark.parametrize("hint", [str, int | None, list[str], dict[str, list[float]], tuple[int, ...], Literal["a"], Sequence[str], Nested])
def test_types_that_json_has_are_plain(hint):
    assert plugins.is_plain(hint)


@pytest.mark.parametrize("hint", [Path, set[str], dict[int, str], Enum("Mode", "A B"), list[Path], Path | None])
def test_types_that_json_would_change_are_not(hint):
    assert not plugins.is_plain(hint)


def test_types_of_settings_that_no_configuration_can_have_are_one_line(tmp_path):
    content = "import numpy as np\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Window:\n    size: np.ndarray = None\n\n\n"
    path = written(tmp_path / "mine.py", content + NOISE.format(name="same").replace("asks=", "settings=Window, asks="))
    with pytest.raises(InputError, match=r"noise 'same': Window\.size is a ndarray, whose values cannot stand in a configuration; take"):
        load(changed("arms/csr/0/data", "same") | {"plugins": [path]})


SETTINGS = """from dataclasses import dataclass, field


@dataclass
class Window:
    size: int = 3
    half: int = field(default=1, init={init})
{made}

@dataclass
class Nested:
    windows: list[Window] = field(default_factory=list)


"""
MADE = """
    def __post_init__(self):
        self.size *= 2
"""


@pytest.mark.parametrize(
    ("init", "made", "said"),
    [
        (True, MADE, r"Window.__post_init__ would run more than once on the same values; compute and check what it does in the function"),
        (False, "", "Window.half has init=False, so nothing can set it; compute"),
    ],
)
@pytest.mark.parametrize("settings", ["Window", "Nested"])
def test_settings_that_compute_when_they_are_made_are_one_line(init, made, said, settings, tmp_path):
    noise = NOISE.format(name="same").replace("asks=", f"settings={settings}, asks=")
    assert f"noise 'same': {said}" in refused(written(tmp_path / "mine.py", SETTINGS.format(init=init, made=made) + noise))
    plugins.load([written(tmp_path / "other.py", SETTINGS.format(init=True, made="") + noise)])


OF_EACH_KIND = """from dataclasses import dataclass

from crossgap import adapter, engine, noise, rows_objective


@dataclass
class Window:
    size: float = 0.5
    number: int = 3
    fast: bool = True


@noise("near", label="near", asks="Does it help?", settings=Window)
@adapter("near", settings=Window)
@engine("near", settings=Window)
@rows_objective("rows", label="rows", decoder=True, settings=Window)
def near(settings):
    return []
"""


def test_values_of_settings_have_their_types(tmp_path):
    """1e-3 is a text in YAML, and so is "no" in quotes."""
    given = {"size": "1e-3", "number": 2.0, "fast": "no"}
    raw = changed("arms/csr/0", {"data": "near", "updates": 2800, "noise": dict(given)})
    raw["plugins"] = [written(tmp_path / "mine.py", OF_EACH_KIND)]
    raw["arms"]["rows"] = [{"data": "rows", "updates": 2800, "objective": dict(given)}, {"data": "task", "updates": 1400}]
    raw["experiments"]["help-de-en"]["training"] |= {"adapter": {"kind": "near", **given}}
    raw["experiments"]["help-de-en"]["decoding"] = {"engine": "near", "engine_settings": dict(given)}
    raw["backbones"]["bible"]["small"]["objective_settings"] = dict(given)
    raw["backbones"]["bible"]["objective"] = "rows"
    config = load(raw)
    experiment = config.experiments["help-de-en"]
    found = [config.arms["csr"][0].noise, config.arms["rows"][0].objective, experiment.decoding.engine_settings]
    found += [experiment.training.adapter, config.backbones["bible"].small.objective_settings]
    for one in found:
        values = {key: value for key, value in one.items() if key != "kind"}
        assert values == {"size": 0.001, "number": 2, "fast": False}
        assert [type(value) for value in values.values()] == [float, int, bool]


def test_what_the_types_say_already_stays_as_it_is():
    @dataclass
    class Inner:
        a: int = 1
        b: int = 2

    @dataclass
    class Outer:
        share: float = 0.5
        inner: Inner = field(default_factory=Inner)
        names: list[str] = field(default_factory=list)

    given = {"share": 1, "inner": {"a": 3}, "names": ["x"]}
    assert repr(typed(Outer, given)) == repr(given)
    assert typed(Outer, {"inner": {"a": "3"}, "other": 1}) == {"inner": {"a": 3}, "other": 1}


FAILING = """from crossgap import generator, label_metric, task


@label_metric("failing", score=lambda sums: sums[0] / {}["x"])
def rows(truth):
    return [[1.0] for _ in truth]


@generator("failing")
def failing(settings):
    return {}["layers"]


task(
    "failing", label="failing", learns="fail", outputs="answers", loss=lambda outputs: outputs["x"], answer=lambda outputs: [],
    counts=lambda truth: [["a"] for _ in truth], scores={"score": lambda sums: {}["x"], "none": lambda sums: float("nan")},
    trivial=lambda truth: truth, trivially="so"
)
"""


def test_a_function_that_fails_says_file_and_line(tmp_path):
    from workflow_scripts.evidence.label_metric import in_per_cent
    from workflow_scripts.tasks.head_task import About
    from workflow_scripts.text.examples import Example
    from workflow_scripts.training.training import _method_of

    path = written(tmp_path / "mine.py", FAILING)
    plugins.load([path])
    own = registry.entry("task", "failing")

    def said(function, *given):
        with pytest.raises(InputError) as raised:
            function(*given)
        return str(raised.value)

    metric, generator = registry.entry("label_metric", "failing"), registry.entry("generator", "failing")
    assert said(in_per_cent, metric, np.ones((2, 1))).startswith(f"metric 'failing': `score`: line 4 of {path}, `@label_metric(")
    assert said(_method_of, generator, "{}").startswith(f"generator 'failing': line 11 of {path}, `return {{}}[")
    assert said(own.scores["score"], np.ones(1)).startswith(f"task 'failing': `score`: line 16 of {path}, ")
    none = "task 'failing': `none`: the score of the sums [0.] is nan; return 0 where nothing was counted"
    assert said(own.scores["none"], np.zeros(1)).startswith(none)
    wrong = said(own.counts, [Example("1", "a", "")], ["1"], "en", About(None, ["1"]))
    assert wrong == "task 'failing': `counts`: ValueError: could not convert string to float: 'a' (it asks for truth)"
