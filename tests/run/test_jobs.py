"""What the wildcards of a job name."""

import contextlib
import re

import pytest
from configurations import DEFAULT, job, planned
from snakemake.iocontainers import Wildcards

from workflow_scripts.run import config, jobs
from workflow_scripts.stage import InputError


def test_all_that_a_rule_asks_is_answered_of_one_job():
    job_of = jobs.jobs_of(planned(DEFAULT))
    first, again, other = (job_of(Wildcards(fromdict={"experiment": "help-de-en", "arm": arm})) for arm in ("csr", "csr", "mask"))
    assert first is again and first is not other and first.plan is other.plan
    with pytest.raises(InputError, match="did you mean 'csr'"):
        job_of({"experiment": "help-de-en", "arm": "crs"})


def test_what_the_wildcards_name_is_found_once():
    asked = job(config.load(DEFAULT), experiment="help-de-en", arm="csr.grid2", phase="pretext", backbone="bible")
    assert asked.plan is asked.plan and asked.plan.task.name == "translation" and asked.arm == "csr"
    assert asked.phase().data == "codeswitch"
    assert asked.phase("finetune").data == "task" and asked.backbone.settings.kind == "small"


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"backbone": "bibel"}, "a file of backbone 'bibel' is asked for, which is not defined, did you mean 'bible'?"),
        ({"experiment": "help-de-en", "arm": "crs"}, "a file of arm 'crs' is asked for, which is not defined, did you mean 'csr'?"),
        ({"analysis": "insides"}, "a file of analysis 'insides' is asked for, which is not defined; there is nothing"),
        ({"experiment": "help-de-en", "arm": "csr.grid3"}, None),
        ({"experiment": "help-de-en", "arm": "trivial"}, None),
    ],
)
def test_a_file_of_a_name_that_is_not_defined_is_refused(asked, said):
    refused_or_not = pytest.raises(InputError, match=f"^{re.escape(said)}$") if said else contextlib.nullcontext()
    with refused_or_not:
        jobs.check_names(config.load(DEFAULT), asked)
