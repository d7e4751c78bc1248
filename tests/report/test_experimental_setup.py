"""What was run: arms, machines and settings chosen from a grid."""

import shutil
from dataclasses import replace

from invented import ARMS, configuration, plain, put, report, results

from workflow_scripts import registry
from workflow_scripts.config.phases import Phase, placed
from workflow_scripts.stage import read_json


def test_every_noise_has_words():
    for name, noise in registry.entries("noise").items():
        assert noise.label and noise.label != name and noise.asks.endswith("?")


def test_restoring_is_explained_where_an_arm_does_it(tmp_path):
    explained = "Code-switching restore (CSR) puts a short stage before finetuning"
    assert explained in plain(report(results(tmp_path / "all"), tmp_path)[0])
    others = ("finetune", "mask")
    assert explained not in plain(report(results(tmp_path / "others", arms=others), tmp_path, arms=others)[0])


def test_what_a_file_holds_besides_is_counted(tmp_path):
    root = results(tmp_path / "results")
    assert "not read" not in plain(report(root, tmp_path)[0])
    path = root / "corpora/help.de-en/corpus.json"
    put(path, {**read_json(path), "passed_over": {"train": {"pt-PT passed over": 7654}, "pages": {"a <b> c": 1}}})
    page = plain(report(root, tmp_path)[0])
    assert "In the file of train, and not read: pt-PT passed over 7,654." in page and "In the file of pages, and not read" in page


def test_arms_trained_on_several_machines_warn(tmp_path):
    root = results(tmp_path / "results")
    assert "Trained on several machines" not in report(root, tmp_path)[0]
    trainings = sorted(root.glob("runs/demo/*/seed1/*/training.json"))
    for path in trainings:
        put(path, {**read_json(path), "machine": "EPYC", "device": "cpu", "precision": "float32"})
    assert "Trained on several machines" not in report(root, tmp_path)[0]
    old = trainings[0]
    put(old, {key: value for key, value in read_json(old).items() if key != "machine"})  # from before trainings named their machine
    assert "Trained on several machines" not in report(root, tmp_path)[0]
    put(old, {**read_json(old), "machine": "EPYC"})
    moved = next(path for path in trainings if "/finetune/seed1" in path.as_posix())
    put(moved, {**read_json(moved), "machine": "EPYC, NVIDIA H100", "device": "cuda:0", "precision": "bfloat16"})
    text = plain(report(root, tmp_path)[0])
    assert "Trained on several machines. Each rounds in its own way" in text and "finetune on EPYC, NVIDIA H100, bfloat16" in text


def test_the_grid_and_the_choice_are_shown(tmp_path):
    results(tmp_path)
    config = configuration()
    config.experiments["demo"].grid = {"learning_rate": [0.001, 0.002]}
    points = [
        {"settings": {"learning_rate": rate}, "dev_bleu": 10 * rate * 1000, "dev_loss": 3.25, "diverged": ""} for rate in (0.001, 0.002)
    ]
    for arm in ARMS:
        mine = [{**points[0], "diverged": "loss nan at <b>"}, points[1]] if arm == "mask" else points
        put(tmp_path / f"runs/demo/{arm}/choice.json", {"by": "dev_bleu", "seed": 1, "points": mine, "chosen": 1, "phases": {}})
    page = report(tmp_path, tmp_path, config)[0]
    table = page[page.index('id="choices-demo"') : page.index('id="distances-demo"')]
    assert (
        '<th scope="row">0.002</th>' in table
        and table.count("<strong>20.00</strong> chosen") == 4
        and table.count("diverged<small") == 1
        and "at &lt;b&gt;" in table
    )
    # an arm that trains nothing has no choice.json
    (tmp_path / "runs/demo/mask/choice.json").unlink()
    config.arms["mask"] = [Phase("task", shots=0)]
    placed(config.arms)
    page = report(tmp_path, tmp_path, config)[0]
    table = page[page.index('id="choices-demo"') : page.index('id="distances-demo"')]
    assert table.count("<strong>20.00</strong> chosen") == 3 and ">mask<" not in table


def test_arms_that_train_nothing_are_not_said_to_be_trained_as_long(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    page = plain(report(root, tmp_path, config)[0])
    assert "All arms share corpus" in page and "train nothing" not in page
    config.arms["mask"] = [Phase("task", shots=0)]
    placed(config.arms)
    page = plain(report(root, tmp_path, config)[0])
    assert "All arms that learn share corpus, backbone, total number of updates" in page and "Arms that train nothing: mask." in page
    assert "All arms that learn make the same number of updates in all" in page


def test_pieces_that_the_vocabulary_lacks_are_shown_by_language(tmp_path):
    root = results(tmp_path / "results")
    assert "that the vocabulary lacks" not in plain(report(root, tmp_path)[0])
    path = next(root.glob("runs/demo/finetune/seed1/finetune/training.json"))
    put(path, {**read_json(path), "unknown": {"de": {"share": 0.034, "word": "ß"}, "en": {"share": 0.0, "word": ""}}})
    assert "pieces that the vocabulary lacks: 3.4% of the German text" in plain(report(root, tmp_path)[0])


def test_all_phases_of_a_chain_are_shown(tmp_path):
    root = results(tmp_path / "results")
    config = configuration()
    first, last = config.arms["csr"]
    config.arms["csr"] = [replace(first, data="mask", updates=5, noise={"window": 3}), replace(first, updates=first.updates - 5), last]
    placed(config.arms)
    run = root / "runs/demo/csr/seed1"
    for name in ("1-mask", "2-codeswitch"):
        shutil.copytree(run / "pretext", run / name)
    shutil.rmtree(run / "pretext")
    shutil.copytree(root / "codeswitch/demo/mask", root / "codeswitch/demo" / config.arms["csr"][0].noised)
    page = plain(report(root, tmp_path, config)[0])
    mask, csr = (registry.entry("noise", name).label for name in ("mask", "codeswitch"))
    assert f"csr 1-mask {mask} window: 3" in page and f"csr 2-codeswitch {csr}" in page and "csr finetune" in page
    assert "or lines to restore" in page and "Does code-switching restore help? csr against the baseline, finetune" in page
