"""A cluster without slurmdbd."""

from runs import QUICK, command, driver, has_checkpoint, profile, queue, same_weights, slurm

CLUSTER = "plain"


def test_a_cancelled_job_goes_on_where_nobody_keeps_accounts(cluster, whole, tmp_path):
    edited = profile(tmp_path / "profile")
    with driver(command(whole, ["plain"], "--profile", edited, *QUICK), tmp_path / "log") as run:
        run.until(lambda: has_checkpoint(whole, "plain"))
        slurm("scancel", *(number for number, *_ in queue("plain")))
        assert run.end() == 0, run.said()
    assert "SLURM status is: 'CANCELLED'" in run.said()
    assert same_weights(whole, "whole", "plain")
