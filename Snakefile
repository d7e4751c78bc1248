"""Crossgap: bridges between multilingual pretraining and cross-lingual tasks, from raw text to a report."""

import os
from pathlib import Path

from snakemake.utils import min_version

# Snakemake puts a Snakefile's folder on the path of modules, also where another workflow uses it (workflow.basedir is then the other's).
from workflow_scripts.stage import resource
from workflow_scripts.start import refuse_start, use_huge_pages

min_version("9.27")  # a priority may be a function

refuse_start(["--configfile", resource("config.yaml")])
use_huge_pages(os.environ)


# the one here, which a run in another folder (--directory) goes by where it has none of its own
configfile: resource("config.yaml")


report: "docs/captions/workflow.rst"


# The first rule is what is made where no target is named. It is not called default_target: that would also
# replace the target of a workflow that uses this one as a module.
rule all:
    input:
        "results/report.html",
        "results/scores.tsv",


include: "rules/common.smk"
include: "rules/acquisition.smk"
include: "rules/corpus.smk"
include: "rules/labelled.smk"
include: "rules/translated.smk"
include: "rules/embeddings.smk"
include: "rules/mapping.smk"
include: "rules/lexicon.smk"
include: "rules/codeswitch.smk"
include: "rules/backbone.smk"
include: "rules/training.smk"
include: "rules/choice.smk"
include: "rules/decoding.smk"
include: "rules/scores.smk"
include: "rules/trivial.smk"
include: "rules/speed.smk"
include: "rules/comet.smk"
include: "rules/significance.smk"
include: "rules/word_accuracy.smk"
include: "rules/representation.smk"
include: "rules/cka.smk"
include: "rules/spectra.smk"
include: "rules/separability.smk"
include: "rules/layerwise.smk"
include: "rules/head.smk"
include: "rules/generation.smk"
include: "rules/aligned.smk"
include: "rules/retrieval.smk"
include: "rules/report.smk"
include: "rules/preflight.smk"


rule lexicons:
    input:
        lexicon_inputs.lexicon_reports(PLANS),


onsuccess:
    if FORCED and any(job.rule.name == "all" for job in workflow.dag.jobs):  # now there is a record of all
        Path("results", UNRECORDED).unlink(missing_ok=True)


onerror:
    print(digest(log, sys.argv[1:], CONFIG), file=sys.stderr)
