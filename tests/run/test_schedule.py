"""What is known of a run by its events, and how long it still takes."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_workflow import ROOT, TINY, lay_out, write_config

from workflow_scripts.run import schedule
from workflow_scripts.run.processes import PLUGIN, as_called, environment, logging_to
from workflow_scripts.run.schedule import PlannedJob, Run, take, time_left
from workflow_scripts.training.callbacks import Progress


def test_the_plan_of_the_pipeline_has_the_work_of_each_training_and_what_waits_for_what(tmp_path):
    options = [*logging_to(tmp_path / "events"), "--configfile", str(ROOT / "config.yaml"), write_config(tmp_path, TINY)]
    line = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "2", "-n", *options]
    subprocess.run(line, cwd=lay_out(tmp_path / "work"), env=environment(PLUGIN), check=True, capture_output=True)
    run = schedule.planned((tmp_path / "events").read_text().splitlines())
    work = {(job.rule, job.wildcards.get("arm", "")): job.work for job in run.jobs.values() if job.work}
    assert work == {
        ("backbone", ""): 20 * 800,
        ("finetune", "finetune"): 16 * 800,
        ("pretext", "csr"): 6 * 800,
        ("finetune", "csr"): 10 * 800,
    }
    assert {"report", "scores", "lexicon"} <= {rule for rule, _ in run.jobs}
    (pretext,) = (job for job in run.jobs.values() if job.rule == "pretext")
    made_by = {output: job.rule for job in run.jobs.values() for output in job.outputs}
    assert {schedule._maker(made_by, name) for name in pretext.inputs} - {None} == {"backbone", "codeswitch"}
    assert max(job.priority for job in run.jobs.values() if job.rule == "scores") >= schedule.ANSWER


def test_what_is_added_to_a_call_is_taken_away_again():
    called = ["--cores", "1", "--configfile", "my.yaml"]
    assert as_called([*logging_to(Path("x")), *called]) == as_called(called) == called


def job(rule="finetune", **changes):
    wildcards = {"arm": changes.pop("arm")} if "arm" in changes else {}
    return PlannedJob(rule, wildcards, **changes)


def a_run(*jobs, **changes):
    """A run of these jobs, of which a training reads ten tokens a second."""
    return Run(jobs={each.key: each for each in jobs}, **{"pace": 10.0, "cores": 1, **changes})


def chain():
    """A backbone of which a quarter is done, and two arms that wait for it, one of them in two phases."""
    return [
        job("backbone", outputs=["b"], work=4000, updates=(10, 40), begun=1.0),
        job(arm="plain", inputs=["b"], outputs=["p"], work=2000),
        job("pretext", arm="csr", inputs=["b"], outputs=["c1"], work=500),
        job(arm="csr", inputs=["c1"], outputs=["c2"], work=1500),
    ]


def test_jobs_are_laid_out_on_the_cores_in_the_order_in_which_they_can_run():
    assert time_left(a_run(*chain()), 2.0) == (3000 + 4000) / 10
    # the arms side by side, but not the backbone; more cores than arms are of no use
    assert time_left(a_run(*chain(), cores=2), 2.0) == time_left(a_run(*chain(), cores=8), 2.0) == (3000 + 2000) / 10
    # a job in a folder waits for the job that makes the folder
    inside = job("decoding", inputs=["c2/model.bin"])
    run = a_run(*chain(), inside)
    assert time_left(run, 2.0) > time_left(a_run(*chain()), 2.0)


def test_the_first_answer_is_there_when_what_is_urgent_has_ended():
    jobs = chain()
    jobs[1].priority = 11
    run = a_run(*jobs)
    assert time_left(run, 2.0, until=lambda each: each.priority >= 10) == (3000 + 2000) / 10


def test_trainings_that_share_a_gpu_follow_each_other():
    run = a_run(*chain(), cores=16)
    take(run, {"event": "resources_info", "time": 0.0, "cores": 16, "msg": "Provided cores: 16"})
    take(run, {"event": "resources_info", "time": 0.0, "msg": 'Provided resources: gpu=Resource("gpu", 1)'})
    for each in run.jobs.values():
        each.gpus = 1
    assert run.gpus == 1 and time_left(run, 2.0) == (3000 + 4000) / 10
    run.gpus = 8
    assert time_left(run, 2.0) == (3000 + 2000) / 10


@pytest.mark.parametrize(("kind", "seconds"), [("nodes", 300 + 200), ("cores", 300 + 400)])
def test_a_job_takes_its_threads_of_the_cores_and_one_place_on_a_cluster(kind, seconds):
    run = a_run(*chain())
    for each in run.jobs.values():
        each.cores = 4
    take(run, {"event": "resources_info", "time": 0.0, kind: 4})
    take(run, {"event": "resources_info", "time": 0.0, "msg": "Provided resources: mem_mb=8000"})
    assert run.cores == 4 and time_left(run, 2.0) == seconds


def test_many_jobs_take_hardly_more_steps_each_than_few():
    def a_run_of(number):
        arms = [str(arm) for arm in range(number)]
        jobs = [job("codeswitch", arm=arm, outputs=[f"{arm}.text"]) for arm in arms]
        for rule, before, after in (("pretext", "text", "first"), ("finetune", "first", "model"), ("decoding", "model", "hyp")):
            work, gpus = (0, 0) if rule == "decoding" else (100, 1)
            jobs += [job(rule, arm=arm, inputs=[f"{arm}.{before}"], outputs=[f"{arm}.{after}"], work=work, gpus=gpus) for arm in arms]
        return a_run(*jobs, cores=8, gpus=1)

    few, many = (steps_of(time_left, a_run_of(number), 2.0) for number in (40, 200))
    assert many < 1.5 * 5 * few


def steps_of(call, *arguments):
    """How many instructions of Python a call takes, which are the same however busy the machine is."""
    counted = itertools.count()

    def count(frame, event, _):
        frame.f_trace_opcodes = True
        next(counted)
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
    return next(counted)


def test_where_the_work_is_not_known_nothing_is_said():
    assert time_left(a_run(*chain(), pace=0.0), 2.0) is None
    # tasks with labels count epochs
    assert time_left(a_run(*chain(), job("head_finetune", arm="x")), 2.0) is None


def test_a_job_begins_ends_and_fails_by_its_events():
    run = a_run(job(arm="csr", work=100))
    said = {"rule_name": "finetune", "wildcards": {"arm": "csr"}, "log": ["x.log"], "resources": {"gpu": 1}}
    assert take(run, {"event": "job_info", "time": 5.0, "jobid": 3, **said}).begun == 5.0 and len(run.running) == 1
    take(run, {"event": "job_error", "time": 6.0, "jobid": 3, "rule_name": "finetune"})
    assert not run.running
    take(run, {"event": "job_info", "time": 7.0, "jobid": 3, **said})
    assert take(run, {"event": "job_finished", "time": 9.0, "job_id": 3}).ended == 9.0 and run.done == 1
    assert take(run, {"event": "job_finished", "time": 9.0, "job_id": 99}) is None


def test_a_backbone_that_is_pretrained_although_one_lies_ready_has_work_when_it_says_so(tmp_path):
    block = {"ready": "there", "training": {"updates": 40, "batch_tokens": 100}}
    backbone = job("backbone", log=str(tmp_path / "backbone.log"), settings={"kind": "small", "small": block}, begun=1.0)
    run = a_run(backbone)
    schedule.look_at_trainings(run, 2.0)
    assert not backbone.work
    (tmp_path / "backbone.log").write_text("update 10/40 loss 3.1\n")
    schedule.look_at_trainings(run, 3.0)
    assert backbone.work == 4000 and backbone.work_left == 3000


def test_of_a_backbone_the_block_of_its_kind_counts():
    block = {
        "small": {"training": {"updates": 1300, "batch_tokens": 1000}},
        "continued": {"training": {"updates": 100, "batch_tokens": 2048}},
    }
    for kind, work in (("small", 1_300_000), ("continued", 204_800), ("hub", 0)):
        assert schedule.work_of("backbone", {"kind": kind, **block}) == work
    assert schedule.work_of("backbone", {"kind": "small", "small": {**block["small"], "ready": "there"}}) == 0
    assert schedule.settings_of("python -m x --settings '{\"updates\": 3}' > log 2>&1") == {"updates": 3}
    assert schedule.settings_of("touch 'x") == schedule.settings_of("touch x") == schedule.settings_of("x --settings []") == {}


def test_the_speed_follows_the_load_and_an_earlier_runs_log_tells_nothing(tmp_path):
    log = tmp_path / "log"
    log.write_text("update 5/40  loss 5.0  left 1:10\nupdate 20/40  loss 4.0  tokens/s 99  left 0:40\nsomething else\n")
    training = job(arm="csr", log=str(log), work=4000, begun=log.stat().st_mtime)
    run = a_run(training)
    schedule.look_at_trainings(run, 1000.0)
    assert training.updates == (20, 40) and schedule.speed(run) == run.pace
    for seconds, done in ((1030.0, 24), (1060.0, 25), (1400.0, 26)):
        training.updates = done, 40
        schedule.note_speed(training, seconds)
    # what is long ago does not count
    assert schedule.speed(run) == pytest.approx(100 / 340)
    os.utime(log, (training.begun - 100,) * 2)
    assert schedule.last_update(training) is None


def test_a_training_that_was_seen_longer_counts_more_and_other_programs_slow_what_was_measured():
    run = a_run(*chain(), share=0.4)
    assert schedule.is_forecast(run) and schedule.speed(run) == 4.0
    for each, seconds, tokens in zip(list(run.jobs.values())[:2], (240.0, 30.0), (1200.0, 300.0), strict=True):
        each.begun, each.seen = 1.0, [(0.0, 0.0), (seconds, tokens)]
    assert not schedule.is_forecast(run) and schedule.speed(run) == pytest.approx(1500 / 270)


def test_what_was_not_trained_in_this_run_says_nothing_of_its_speed(tmp_path):
    event = {"event": "job_info", "rule_name": "finetune", "wildcards": {"arm": "prompted"}, "jobid": 1}
    settings = '{"updates": 25000, "batch_tokens": 8192}'
    prompted = schedule.job_of(event | {"shellcmd": f"python -m x finetune --shots 0 --settings '{settings}'"}, tmp_path)
    trained = schedule.job_of(event | {"shellcmd": f"python -m x finetune --settings '{settings}'"}, tmp_path)
    assert (prompted.work, trained.work) == (0, 25000 * 8192)
    run = a_run(*chain(), prompted)
    assert schedule.time_left(run, 1.0) is not None  # it does not make the end unknown
    went_on = job(arm="resumed", work=1000, begun=1.0, ended=61.0)
    went_on.seen = [(10.0, 900.0), (60.0, 1000.0)]
    assert schedule.speed_of_trainings(a_run(went_on)) == pytest.approx(100 / 51)
    short = job(arm="short", work=1000, begun=1.0, ended=51.0)
    short.seen = [(46.0, 900.0)]
    assert schedule.speed_of_trainings(a_run(short)) == pytest.approx(20.0)


def test_what_a_training_prints_is_understood(tmp_path, capsys):
    log = tmp_path / "log"
    said = Progress(10)
    state = SimpleNamespace(global_step=0, max_steps=40)
    said.on_train_begin(None, state, None)
    said.on_log(None, state, None, logs={"eval_loss": 3.25})  # a look that a stopped phase makes up for
    assert capsys.readouterr().out == "update 0/40  eval_loss 3.25\n"
    state.global_step = 30
    said.on_log(None, state, None, logs={"loss": 3.25, "learning_rate": 1e-3})
    log.write_text(capsys.readouterr().out + "continuing\n")
    assert schedule.last_update(PlannedJob("finetune", log=str(log))) == (30, 40)


def test_jobs_of_a_rule_take_as_long_as_those_before_and_a_slow_machine_is_known_by_them():
    ended = job("embeddings", begun=1.0, ended=301.0)
    run = a_run(ended, job("mapping"), job("decoding", arm="csr"))
    takes = schedule.seconds_of_rules(run, 6000.0)
    assert takes["embeddings"] == 300.0 and takes["mapping"] == schedule.USUAL["mapping"] * 300 / schedule.USUAL["embeddings"]
    late = job("mapping", begun=1.0)
    assert schedule.still_takes(late, takes, 1.0, 1001.0) == 1000 / 3
