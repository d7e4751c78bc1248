rule scores:
    input:
        unpack(of(arms.metric_plugins)),
        hypotheses="results/runs/{experiment}/{arm}/seed{seed}/{testset}.hyp",
        references=of(arms.test_text, 1),
        source=of(arms.test_text, 0),
    output:
        scores=report(
            "results/runs/{experiment}/{arm}/seed{seed}/{testset}.scores.json",
            caption="../docs/captions/scores.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/scores/{experiment}/{arm}.seed{seed}.{testset}.log",
    benchmark:
        "results/benchmarks/scores/{experiment}/{arm}.seed{seed}.{testset}.tsv"
    wildcard_constraints:
        experiment=experiments_with(answers="text"),
    priority: of(urgency.of_score)
    conda:
        "../envs/crossgap.yaml"
    params:
        language=of(arms.target),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.evidence.scores --hypotheses {input.hypotheses:q} --references {input.references:q} "
        "--source {input.source:q} --output {output.scores:q} --language {params.language} --settings {params.settings:q} > {log:q} 2>&1"
