rule significance:
    input:
        unpack(of(arms.metric_plugins)),
        systems=of(arms.of_arms, "{testset}.hyp"),
        references=of(arms.test_text, 1),
    output:
        report(
            "results/runs/{experiment}/significance/{testset}.seed{seed}.json",
            caption="../docs/captions/significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "each against the baseline", "seed": "{seed}"},
        ),
    log:
        "results/logs/significance/{experiment}/{testset}.seed{seed}.log",
    benchmark:
        "results/benchmarks/significance/{experiment}/{testset}.seed{seed}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(attrgetter("plan.arms")),
        language=of(arms.target),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.evidence.significance per_seed --systems {input.systems:q} --names {params.names:q} "
        "--references {input.references:q} --output {output:q} --language {params.language} --seed {wildcards.seed} "
        "--settings {params.settings:q} > {log:q} 2>&1"


rule significance_over_seeds:
    input:
        unpack(of(arms.metric_plugins)),
        systems=of(arms.of_runs, "{testset}.hyp"),
        comet=of(arms.comet_scores),
        references=of(arms.test_text, 1),
        # not read: on a cluster they share a job with those that it waits for
        seeds=lambda w: [f"results/runs/{w.experiment}/significance/{w.testset}.seed{seed}.json" for seed in job_of(w).plan.seeds],
    output:
        report(
            "results/runs/{experiment}/significance/{testset}.json",
            caption="../docs/captions/significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "every two", "seed": "all"},
        ),
    log:
        "results/logs/significance/{experiment}/{testset}.log",
    benchmark:
        "results/benchmarks/significance/{experiment}/{testset}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(attrgetter("plan.arms")),
        seeds=of(attrgetter("plan.seeds")),
        comet=lambda w, input: flags(input, "comet"),
        language=of(arms.target),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.evidence.significance over_seeds --systems {input.systems:q} --names {params.names:q} --seeds {params.seeds} "
        "--references {input.references:q} --output {output:q} --language {params.language} {params.comet:q} "
        "--settings {params.settings:q} > {log:q} 2>&1"
