"""tested: the tests of significance of an experiment's arms, computed from the texts that they wrote, for packs and for unfinished runs."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workflow_scripts.evidence import significance
from workflow_scripts.report.study import Study


def compute_tests(study: Study, folder: Path, settings: Any, comet: Mapping[str, tuple[Path, ...]] = MappingProxyType({})) -> None:
    """Write the tests of every two arms on each test set, by seed and over all seeds, into `folder`, where they lie as those of a run do.

    `settings` are those of the scores. `comet` has, by test set, the files with COMET's scores of all runs, where these were computed.
    """
    arms, seeds = tuple(study.arms), tuple(study.seeds)
    for testset in study.tested:
        _, references = study.test_files(testset)
        written = {(arm, seed): study.hypotheses(arm, testset, seed) for arm in arms for seed in seeds}
        options: dict[str, Any] = {"names": arms, "language": study.answered_in(testset), "settings": settings}
        for seed in seeds:
            mine, output = tuple(written[arm, seed] for arm in arms), folder / f"significance/{testset}.seed{seed}.json"
            significance.per_seed(mine, references, output, seed=seed, **options)
        output = folder / f"significance/{testset}.json"
        significance.over_seeds(tuple(written.values()), references, output, seeds=seeds, comet=comet.get(testset, ()), **options)
