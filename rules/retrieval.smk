# One job for all test sets: the model is loaded once.
rule retrieval:
    input:
        unpack(of(searches.dev)),
        model=of(searches.model),
        sources=of(searches.text_files, "source"),
        targets=of(searches.text_files, "target"),
        gold=of(searches.text_files, "gold"),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/retrieval.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/retrieval/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/retrieval/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(name="retrieval"),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(searches.languages),
        dev=lambda w, input: flags(input, "dev_sources", "dev_targets", "dev_gold"),
        settings=of(searches.model_settings),
    shell:
        "python -m workflow_scripts.tasks.retrieval search --model {input.model:q} --sources {input.sources:q} --targets {input.targets:q} "
        "--gold {input.gold:q} --folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "{params.dev:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule retrieval_significance:
    input:
        systems=of(searches.predictions),
        gold=of(searches.text_files, "gold"),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/retrieval_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/retrieval/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/retrieval/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(name="retrieval"),
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(attrgetter("plan.arms")),
        testsets=of(arms.testsets),
        seeds=of(attrgetter("plan.seeds")),
        metric=of(searches.metric),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.retrieval compare --systems {input.systems:q} --gold {input.gold:q} --output {output:q} "
        "--names {params.names:q} --testsets {params.testsets:q} --seeds {params.seeds} --metric {params.metric} "
        "--settings {params.settings:q} > {log:q} 2>&1"
