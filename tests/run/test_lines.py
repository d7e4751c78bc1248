"""What is said before a run, every minute, and at its end."""

import re
from pathlib import Path

import pytest
from test_outcomes import HEAD, put

from workflow_scripts.run import lines
from workflow_scripts.run.schedule import PlannedJob, Run, time_left


def a_run(folder, *jobs):
    return Run(folder, jobs={job.key: job for job in jobs}, pace=10.0, cores=2)


def training(arm, **changes):
    return PlannedJob("finetune", {"experiment": "help-de-en", "arm": arm, "seed": "1"}, outputs=[arm], **changes)


def arms(**of_csr):
    return [
        training("finetune", priority=11, work=6000),
        training("csr", priority=11, **{"work": 6000, **of_csr}),
        training("mask", work=6000),
    ]


def test_it_says_what_it_will_do(tmp_path):
    said = [*lines.announced(a_run(tmp_path, *arms()))]
    assert said[0].startswith("help-de-en: 3 arms (csr, finetune, mask) to train, then to translate")
    assert any("results/report.html" in line for line in said)
    assert next(lines.announced(a_run(tmp_path, PlannedJob("corpus"), PlannedJob("all")))) == "to do: cleaning the text"
    assert [*lines.announced(Run())] == []


def test_progress_is_a_share_of_the_time(tmp_path):
    run = a_run(tmp_path, *arms(begun=100.0, updates=(50, 100)), PlannedJob("of_a_new_kind", begun=100.0))
    # of two cores both are taken: 300 seconds until csr has ended, then finetune and mask side by side, 600 seconds
    left = time_left(run, 400.0)
    share = lines.share_passed(300.0, left, 0.0)
    said = lines.line_about(run, left, share)
    assert said.startswith("25 %, 12 to 20 minutes left. csr: finetuning, 50 of 100 updates; of a new kind")
    next(iter(run.jobs.values())).ended = 600.0  # a training has shown how fast it was, at half the speed
    next(iter(run.jobs.values())).begun = 1.0
    assert lines.line_about(run, left, share).startswith("25 %, 15 minutes left. csr")
    unknown = a_run(tmp_path, PlannedJob("head_finetune", {"arm": "x"}, begun=1.0))
    assert "of" not in lines.line_about(unknown, time_left(unknown, 2.0), 0.0)


def test_the_share_of_the_time_never_falls_and_is_whole_at_the_end_alone():
    shares = [0.0]
    for passed, left in ((60.0, 240.0), (120.0, 2280.0), (180.0, None), (600.0, 600.0), (1200.0, 0.0)):
        shares.append(lines.share_passed(passed, left, shares[-1]))
    assert shares == [0.0, 0.2, 0.2, 0.2, 0.5, 0.99]


@pytest.mark.parametrize(
    ("minutes", "said"), [(1, "1 minute"), (20, "16 to 26 minutes"), (110, "88 minutes to 2.4 hours"), (300, "4.0 to 6.5 hours")]
)
def test_a_time_that_is_not_known_well_is_a_range(minutes, said):
    assert lines.roughly(60.0 * minutes) == said


ROWS = [
    ("csr", "finetune", "3.1", "2.0", "4.0"),
    ("mask", "finetune", "2.0", "1.0", "3.0"),
    ("mask", "csr", "-1.1", "-2.0", "-0.5"),
    ("random", "mask", "0.1", "-1", "1"),
]


def test_the_method_is_compared_with_the_baseline_and_with_its_controls(tmp_path):
    names = ("arm", "other", "difference", "low", "high")
    rows = [{"experiment": "help-de-en", **dict(zip(names, row, strict=True)), "seeds_low": "", "seeds_high": ""} for row in ROWS]
    found = [*lines.wanted_comparisons(a_run(tmp_path, *arms()), rows)]
    assert [(row["arm"], row["other"]) for row in found] == [("csr", "finetune"), ("mask", "finetune"), ("csr", "mask")]
    assert (found[2]["difference"], found[2]["low"], found[2]["high"]) == ("1.1", "0.5", "2.0")


def test_the_end_has_the_answer_the_files_and_what_to_do_next(tmp_path):
    run = a_run(tmp_path, *arms(), PlannedJob("report"))
    row = "help-de-en\tpages\tBLEU\tcsr\tfinetune\t1\t3.12\t2.1\t4.0\t\t\t0.0003\t0.0001\n"
    put(tmp_path / "results/comparisons.tsv", HEAD + row)
    said = [*lines.ended(run, 754.3, 0, ["--cores", "all"])]
    assert said[0] == "all done in 12:34" and "The answer: csr − finetune +3.1 BLEU (95 % +2.1 to +4.0, p < 0.001)." in said
    assert "That is more than chance on these sentences; another training may differ." in said
    assert "            snakemake --cores all --config 'run={seeds: [1, 2, 3]}'" in said
    assert "Next:       two more seeds tell whether another training gives the same, in twice this time:" in said
    rest = a_run(tmp_path, PlannedJob("report"))  # of a run that went on, whose time says nothing of the trainings before
    assert "Next:       two more seeds tell whether another training gives the same:" in [*lines.ended(rest, 20.0, 0, [])]
    average = row.replace("pages", "average").replace("3.12", "2.22")
    put(tmp_path / "results/comparisons.tsv", HEAD + row + average)
    assert [line for line in lines.ended(run, 1.0, 0, []) if "+2.2 BLEU" in line and line.endswith(" on average.")]
    put(tmp_path / "results/comparisons.tsv", HEAD + row.replace("\t1\t3.12", "\t3\t3.12"))
    assert not any("seeds: [" in line for line in lines.ended(run, 754.3, 0, []))
    assert [*lines.ended(Run(tmp_path / "elsewhere"), 1.0, 0, [])] == ["nothing to be done: everything is there already"]


def test_a_run_that_stopped_says_what_is_there_and_how_to_go_on(tmp_path):
    run = Run(folder=tmp_path)
    log = tmp_path / lines.LOG
    log.parent.mkdir(parents=True)
    log.write_text("Complete log: x\n", encoding="utf-8")
    said = [*lines.ended(run, 60.0, 130, ["--cores", "all"])]
    assert said[0] == "Complete log: x" and said[1].startswith("stopped after 1:00 with exit status 130")
    assert said[2:] == [
        "Next:       what is finished stays; make resume goes on, or the same command:",
        "            snakemake --cores all",
    ]
    (tmp_path / "results/report.html").write_text("", encoding="utf-8")
    log.write_text("──── A job failed\nWhat is finished stays. To go on: …\n", encoding="utf-8")
    said = [*lines.ended(run, 60.0, 1, [])]
    assert said[-1] == f"The page:   {tmp_path}/results/report.html (with what was there before the run stopped)"
    assert [*lines.ended(run, 1.0, 0, [])][1] == f"The page:   {tmp_path}/results/report.html"


def test_the_page_for_own_text_has_that_heading():
    last = [*lines.next_steps([], [], Path("nowhere"), True)][-1]
    file, heading = re.search(r"(\S+\.md), “(.+)”", last).groups()
    assert f"\n## {heading}\n" in Path(file).read_text(encoding="utf-8")


def test_times_in_words():
    assert [lines.rounded(s) for s in (20, 89, 600, 7300, 90_000)] == ["1 minute", "1 minute", "10 minutes", "2.0 hours", "25 hours"]
    assert [lines.clock(s) for s in (5, 754.3, 3725)] == [" 0:05", "12:34", "1:02:05"]


@pytest.mark.parametrize("said", ["a\n──── 1 job failed ────\nb\n\nWhat is finished stays, and so on.\nc\n", "x\n\ny\n"])
def test_the_reason_is_the_digest_or_the_last_lines(said):
    assert lines.reason(said) in ("──── 1 job failed ────\nb\n\nWhat is finished stays, and so on.", "x\ny")


def test_more_seeds_are_asked_for_with_the_seeds_of_the_run(tmp_path):
    put(tmp_path / "results/configuration.json", '{"run": {"seeds": [7]}, "experiments": {"help-de-en": {"seeds": null}}}')
    row = "help-de-en\tpages\tBLEU\tcsr\tfinetune\t1\t3.12\t2.1\t4.0\t\t\t0.0003\t0.0001\n"
    put(tmp_path / "results/comparisons.tsv", HEAD + row)
    run = a_run(tmp_path, *arms(), PlannedJob("report"))
    assert "            snakemake --config 'run={seeds: [7, 1, 2]}'" in lines.ended(run, 1.0, 0, [])
    put(tmp_path / "results/configuration.json", '{"run": {"seeds": [1, 2, 3]}, "experiments": {"help-de-en": {"seeds": 1}}}')
    assert "            snakemake --config 'experiments={help-de-en: {seeds: [1, 2, 3]}}'" in lines.ended(run, 1.0, 0, [])
    put(tmp_path / "results/configuration.json", '{"run": {"seeds": [1]}, "experiments": {"help-de-en": {"models": {}}}}')
    assert not any("seeds: [" in line for line in lines.ended(run, 1.0, 0, [])), "nothing is trained there"
