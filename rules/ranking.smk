use rule labelling_finetune as ranking_finetune with:
    wildcard_constraints:
        experiment=experiments_with(task="ranking"),
    params:
        settings=of(arms.ranking_settings),


# One job for all test sets: the model is loaded once, and documents of all languages are batched by length.
rule ranking_prediction:
    input:
        unpack(of(arms.grid_choice)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        examples=of(arms.tested_examples),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/ranking.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/ranking/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/ranking/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="ranking"),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(arms.tested_languages),
        grades=of(arms.grades),
        choice=lambda w, input: flags(input, "choice"),
        settings=settings_of("ranking"),
    shell:
        "python -m workflow_scripts.tasks.ranking predict --model {input.model:q} --examples {input.examples:q} "
        "--folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} --grades {params.grades:q} "
        "{params.choice:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule ranking_significance:
    input:
        systems=of(arms.of_runs, "predictions"),
        examples=of(arms.tested_examples),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/ranking_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/ranking/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/ranking/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="ranking"),
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(arms.arms),
        testsets=of(arms.testsets),
        seeds=of(arms.seeds),
        metric=lambda w: CONFIG.experiments[w.experiment].ranking.metric,
        relevant=lambda w: CONFIG.experiments[w.experiment].ranking.relevant,
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.ranking compare --systems {input.systems:q} --examples {input.examples:q} --output {output:q} "
        "--names {params.names:q} --testsets {params.testsets:q} --seeds {params.seeds} --metric {params.metric} --relevant {params.relevant} "
        "--settings {params.settings:q} > {log:q} 2>&1"
