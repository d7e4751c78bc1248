"""Lets preflight look at one thing of a configuration."""

from configurations import planned

from workflow_scripts.run import labelled_findings, lexicon_findings, model_findings, resources, text_findings
from workflow_scripts.run.preflight import of_each
from workflow_scripts.tasks.translation import translations_of_run

LOOKS = {
    "aligned": text_findings.retrieval_text,
    "backbones": lambda plans: of_each(model_findings.of_backbone, plans.backbones_used),
    "corpora": text_findings.corpora,
    "data": text_findings.data,
    "disk": resources.disk,
    "experiments": lambda plans: of_each(text_findings.unaligned, translations_of_run(plans)),
    "labelled": labelled_findings.labelled,
    "lexicons": lexicon_findings.lexicons,
}
"""Section of the configuration, or part of the machine → who looks at it."""


def found(raw: dict, about: str, jobs: dict | None = None) -> str:
    """What is said about one thing."""
    plans = planned(raw)
    part = about.removeprefix("node ").partition(".")[0].partition(" ")[0]
    looks = resources.memory(plans, jobs or {}) if part == "memory" else LOOKS[part](plans)
    return next(str(finding) for finding in looks if finding.about == about)


def moses(folder, de, en):
    """The settings of two files of a folder that are translations line by line."""
    return {"files": {"de": str(folder / de), "en": str(folder / en)}}
