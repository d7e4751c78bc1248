"""A run in one file: what is packed, and tables that are made again from it."""

import contextlib
import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import test_labels
from invented import configuration, generated, generating, put, results

from workflow_scripts import plugins
from workflow_scripts.report import about, pack, so_far
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.run.config import dumped
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.plan import Plans


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a run of two seeds whose scores belong to its sentences, and its pack."""
    folder = tmp_path_factory.mktemp("finished")
    run = folder / "run"
    root, config = results(run / "results", seeds=(1, 2)), configuration(seeds=(1, 2))
    put(root / "configuration.json", dumped(config))
    put(root / "lexicons/help.de-en/own/de.vec", "a file that no table needs")
    with contextlib.chdir(run):
        pack.compute(root.relative_to(run), Plans(config))
        write_report(root, root / "report.html", root / "scores.tsv", Plans(config), tables=(root / "comparisons.tsv",))
        pack.write(folder / "run.zip")
    return folder


@pytest.fixture
def packed(finished, tmp_path, monkeypatch):
    """A copy of the run, in which the test is, and of its pack."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path / "run.zip"


def changed(path, **contents):
    """The pack with other contents of some files (`None`: without them), and with the checksums of these where they are given."""
    with zipfile.ZipFile(path) as file:
        found = {name: file.read(name) for name in file.namelist()} | contents
    other = path.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as file:
        for name, content in found.items():
            if content is not None:
                file.writestr(name, content)
    return other


def test_a_pack_has_what_tables_and_tests_need(packed):
    with zipfile.ZipFile(packed) as file:
        names, said = set(file.namelist()), json.loads(file.read("pack.json"))
    needed = {"configuration.json", "scores.tsv", "comparisons.tsv", "report.html", "corpora/help.de-en/test/pages.en"}
    needed |= {f"runs/demo/csr/seed{seed}/{name}" for seed in (1, 2) for name in ("pages.hyp", "pages.scores.json", "finetune/curve.tsv")}
    assert names >= {f"results/{name}" for name in needed} | {"envs/requirements.txt", "pack.json"}
    assert not [name for name in names if name.endswith(".vec")] and {*said["files"]} == names - {"pack.json"}
    assert len(said["files"]["results/scores.tsv"]["sha256"]) == 64 and "commit" in said["provenance"] and said["processor"]


def test_of_a_dictionary_the_lines_are_packed_that_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workflow_scripts.report.labels.FREQUENT", 2)
    root, config = test_labels.results(Path("results")), test_labels.configuration()
    put(root / "configuration.json", dumped(config))
    dictionary = root / "lexicons/texts/given/en-de/en-de.tsv"
    put(dictionary, "car\tauto\t1\t1.0\nhouse\thaus\t1\t1.0\nsky\thimmel\t1\t1.0\nthe\tdie\t1\t1.0\n")
    write_report(root, root / "report.html", root / "scores.tsv", Plans(config), tables=(root / "comparisons.tsv",))
    pack.write(tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip") as file:
        assert file.read(dictionary.as_posix()) == b"house\thaus\t1\t1.0\nthe\tdie\t1\t1.0\n"
        said = json.loads(file.read("pack.json"))["files"]
    assert said[dictionary.as_posix()]["part_of"] == pack.checksum(dictionary.read_bytes())
    assert not said["results/scores.tsv"].keys() & {"part_of"}
    pack.rebuild(tmp_path / "run.zip", tmp_path / "new", stored=True)
    assert "All tables are the same" in capsys.readouterr().out
    parts = [
        re.search(r'id="lexicon-labels".*?<h2', page.read_text(encoding="utf-8"), flags=re.S)
        for page in (root / "report.html", tmp_path / "new/rebuilt/report.html")
    ]
    assert parts[0] and parts[1] and parts[0][0] == parts[1][0] and "haus" in parts[0][0]


def test_a_pack_without_pages_says_whose_its_texts_are(packed, tmp_path, capsys):
    pack.write(tmp_path / "tables.zip", without_pages=True, licences="(c) somebody, CC BY 4.0")
    with zipfile.ZipFile(tmp_path / "tables.zip") as file:
        assert json.loads(file.read("pack.json"))["licences"] == "(c) somebody, CC BY 4.0"
        assert "results/report.html" not in file.namelist()
    pack.rebuild(tmp_path / "tables.zip", tmp_path / "new")
    assert "All tables are the same" in capsys.readouterr().out
    assert "could not be made" not in (tmp_path / "new/rebuilt/report.html").read_text(encoding="utf-8")


def test_folders_of_the_machine_are_left_out(packed, tmp_path):
    run = tmp_path / "run"
    config = json.loads((run / "results/configuration.json").read_text(encoding="utf-8"))
    config["backbones"]["small"]["model"] = "/home/somebody/models/e5"
    config["corpora"]["help"]["train"]["files"]["de"] = f"{run}/data/train.de"
    put(run / "results/configuration.json", json.dumps(config))
    put(
        run / "results/logs/snakemake.log",
        f"  Host: mine\n  Command: /home/x/snakemake --configfile {run}/my.yaml /home/somebody/models/e5\n",
    )
    said = json.loads((run / "results/backbones/small/backbone.json").read_text(encoding="utf-8"))
    put(run / "results/backbones/small/backbone.json", {**said, "model": "/home/somebody/models/e5"})
    pack.write(tmp_path / "short.zip")
    with zipfile.ZipFile(tmp_path / "short.zip") as file:
        every = {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}
    assert [name for name, text in every.items() if "/home" in text or str(tmp_path) in text or "mine" in text] == []
    packed_config = json.loads(every["results/configuration.json"])
    assert packed_config["backbones"]["small"]["model"] == "models/e5"
    assert packed_config["corpora"]["help"]["train"]["files"]["de"] == "data/train.de"
    assert every["results/logs/snakemake.log"] == "  Command: snakemake --configfile my.yaml models/e5\n"


def test_texts_are_packed_as_they_are(packed, tmp_path):
    run, source = tmp_path / "run", "results/corpora/help.de-en/test/pages.de"
    text = f"Open https://x.org{run}/files.zip and {run}/results .\n"
    (run / source).write_text(text + (run / source).read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
    pack.write(tmp_path / "new.zip")
    with zipfile.ZipFile(tmp_path / "new.zip") as file:
        assert file.read(source).decode().startswith(text)


@pytest.mark.parametrize(
    ("folder", "text", "short"),
    [
        ("/srv", '"/srv/results/a" https://x.org/srv/b /usr/srv/c', '"results/a" https://x.org/srv/b /usr/srv/c'),
        ("/", '"/results/a" https://x.org//b', '"/results/a" https://x.org//b'),
    ],
)
def test_the_folder_of_a_run_is_cut_where_a_path_begins(monkeypatch, folder, text, short):
    monkeypatch.setattr(pack.Path, "cwd", lambda: Path(folder))
    assert pack._shorter(text, pack.shorter_names({})) == short


def test_the_page_of_a_pack_says_when_and_how_long_the_run_was(packed, tmp_path):
    run = tmp_path / "run"
    for name, ends, seconds in (("corpus/a", 1_000_000_060, 60), ("training/demo/csr.seed1.finetune", 1_000_000_600, 540)):
        put(run / f"results/benchmarks/{name}.tsv", f"s\th:m:s\n{seconds}\t-\n")
        os.utime(run / f"results/benchmarks/{name}.tsv", (ends, ends))
    pack.write(tmp_path / "timed.zip")
    pack.unpack(tmp_path / "timed.zip", tmp_path / "new")
    assert about.worked(tmp_path / "new/results") == [600]


def test_tables_of_the_users_own_stay_out(packed, tmp_path):
    put(tmp_path / "run/results/effects.tsv", "mine\n1\n")
    pack.write(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_a_folder_of_the_results_may_be_a_link(packed, tmp_path):
    runs = tmp_path / "run/results/runs"
    shutil.move(runs, tmp_path / "scratch")
    runs.symlink_to(tmp_path / "scratch")
    pack.write(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_the_same_run_gives_the_same_pack(packed, tmp_path):
    pack.write(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


@pytest.mark.parametrize("stored", [False, True])
def test_tables_are_made_again(packed, tmp_path, capsys, stored):
    pack.rebuild(packed, tmp_path / "new", stored=stored)
    said = capsys.readouterr().out
    assert "All tables are the same" in said and ("as stored" if stored else "from the sentences") in said
    for name in ("scores.tsv", "comparisons.tsv"):
        assert (tmp_path / f"new/rebuilt/{name}").read_bytes() == (tmp_path / f"run/results/{name}").read_bytes()
    assert (tmp_path / "new/rebuilt/report.html").exists() and (tmp_path / "new/rebuilt/translations/demo.pages.html").exists()


def test_scores_that_are_not_those_of_the_sentences_are_found(tmp_path, monkeypatch):
    run = tmp_path / "run"
    root, config = results(run / "results"), configuration()  # whose scores are invented
    put(root / "configuration.json", dumped(config))
    monkeypatch.chdir(run)
    write_report(root, root / "report.html", root / "scores.tsv", Plans(config))
    pack.write(tmp_path / "run.zip")
    pack.rebuild(tmp_path / "run.zip", tmp_path / "as-stored", stored=True)
    with pytest.raises(InputError, match=r"scores\.tsv: \d+ of \d+ lines differ; line 2 was .*20\.0.* and is "):
        pack.rebuild(tmp_path / "run.zip", tmp_path / "new")


def test_meteors_program_is_not_packed_and_is_named_to_make_its_scores_again(tmp_path, monkeypatch):
    root, config = generated(tmp_path / "results"), generating()
    config.experiments["asking"].scores.meteor_jar = "meteor-1.5/meteor-1.5.jar"
    with pytest.raises(
        InputError, match=r"METEOR was computed by meteor-1\.5/meteor-1\.5\.jar, which is not here; .* --meteor-jar, or add --st"
    ):
        pack.compute(root, Plans(config))
    (tmp_path / "mine.jar").touch()
    asked = []
    monkeypatch.setattr(pack.scores, "main", lambda *files, settings, **_: asked.append(settings.meteor_jar))
    monkeypatch.setattr(pack, "compute_tests", lambda study, folder, settings, comet: asked.append(settings.meteor_jar))
    pack.compute(root, Plans(config), tmp_path / "mine.jar")
    assert {*asked} == {str(tmp_path / "mine.jar")}


def test_each_test_set_is_scored_and_tested_in_its_own_language(tmp_path):
    root = generated(tmp_path / "results")
    pack.compute(root, Plans(generating()))
    asking = root / "runs/asking"
    for testset, meteor, tokenizer in (("en", "METEOR (exact+stem)", "tok:13a"), ("zh", "METEOR (exact)", "tok:zh")):
        found = read_json(asking / f"finetune/seed1/{testset}.scores.json")["metrics"]
        assert meteor in found and tokenizer in found["BLEU"]["signature"]
        assert meteor in {pair["metric"] for pair in read_json(asking / f"significance/{testset}.json")["pairs"]}
        assert meteor in read_json(asking / f"significance/{testset}.seed1.json")["systems"]["again"]


def test_a_pack_that_was_changed_is_refused(packed, tmp_path):
    scores = "results/scores.tsv"
    for content, said in (("", "has another checksum"), (None, "in the pack or in its list")):
        with pytest.raises(InputError, match=f"{scores}.*{said}"):
            pack.rebuild(changed(packed, **{scores: content}), tmp_path / "new")
    with pytest.raises(InputError, match="would lie outside"):
        pack.rebuild(changed(packed, **{"../escaped": ""}), tmp_path / "outside")
    assert not (tmp_path / "escaped").exists() and not (tmp_path / "new").exists()


def test_what_is_no_pack_or_no_finished_run_is_said(packed, tmp_path):
    (tmp_path / "text.zip").write_text("no zip", encoding="utf-8")
    for path, said in (("text.zip", "is no pack of a run"), ("gone.zip", "no such file")):
        with pytest.raises(InputError, match=said):
            pack.rebuild(tmp_path / path, tmp_path / "new")
    with pytest.raises(InputError, match="is there already"):
        pack.rebuild(packed, tmp_path / "run")
    with pytest.raises(InputError, match="a finished run is packed"):
        pack.write(tmp_path / "x.zip", results=tmp_path)


def test_plugins_are_packed_and_loaded_only_where_it_is_said(packed, tmp_path, monkeypatch):
    run = tmp_path / "run"
    put(run / "mine.py", 'from crossgap import noise\n\n\n@noise("packed", label="p", asks="?")\ndef f(words):\n    return words\n')
    config = json.loads((run / "results/configuration.json").read_text(encoding="utf-8")) | {"plugins": ["mine.py"]}
    put(run / "results/configuration.json", json.dumps(config))
    pack.write(tmp_path / "with.zip")
    plugins.forget()  # as a new process
    with pytest.raises(InputError, match=r"brings plugins, which are code \(mine\.py\)"):
        pack.rebuild(tmp_path / "with.zip", tmp_path / "without")
    shutil.rmtree(tmp_path / "without")
    pack.rebuild(tmp_path / "with.zip", tmp_path / "without", stored=True, trusted=True)
    plugins.forget()
    # in another folder, as a clone is for a run with --directory
    (run / ".snakemake").mkdir()
    monkeypatch.chdir(tmp_path)
    pack.write(Path("from elsewhere.zip"), results=Path("run/results"))
    with zipfile.ZipFile("with.zip") as here, zipfile.ZipFile("from elsewhere.zip") as elsewhere:
        assert set(here.namelist()) == set(elsewhere.namelist()) and "mine.py" in here.namelist()
    plugins.forget()
    so_far.main(Path("run/results"), Path("page.html"))
    assert Path("page.html").exists()
    plugins.forget()


def test_a_file_of_the_run_that_lies_elsewhere_is_refused(packed, tmp_path):
    put(tmp_path / "else.py", "")
    config = configuration()
    config.plugins = [str(tmp_path / "else.py")]
    with pytest.raises(InputError, match=r"else\.py: lies outside of the folder of the run"):
        pack._beside(Plans(config))
