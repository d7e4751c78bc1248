use rule labelling_finetune as answering_finetune with:
    wildcard_constraints:
        experiment=experiments_with(task="answering"),
    params:
        settings=of(arms.finetuning_settings),


# One job for all test sets: the model is loaded once, and windows of all languages are batched by length.
rule answering_prediction:
    input:
        unpack(of(arms.grid_choice)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        examples=of(arms.tested_examples),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/answering.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/answering/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/answering/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="answering"),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(arms.tested_languages),
        choice=lambda w, input: flags(input, "choice"),
        settings=settings_of("answering"),
    shell:
        "python -m workflow_scripts.tasks.answering predict --model {input.model:q} --examples {input.examples:q} "
        "--folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "{params.choice:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule answering_significance:
    input:
        systems=of(arms.of_runs, "predictions"),
        examples=of(arms.tested_examples),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/answering_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/answering/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/answering/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="answering"),
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(arms.arms),
        testsets=of(arms.testsets),
        seeds=of(arms.seeds),
        languages=of(arms.tested_languages),
        metric=lambda w: CONFIG.experiments[w.experiment].answering.metric,
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.answering compare --systems {input.systems:q} --examples {input.examples:q} --output {output:q} "
        "--names {params.names:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "--seeds {params.seeds} --metric {params.metric} --settings {params.settings:q} > {log:q} 2>&1"
