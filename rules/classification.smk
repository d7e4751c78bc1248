rule classification_finetune:
    input:
        unpack(of(arms.grid_choice)),
        unpack(of(arms.switched_while_finetuning)),
        start=of(arms.phase_start, "finetune"),
        train=of(arms.finetuning_text, "train"),
        dev=of(arms.finetuning_text, "dev"),
    output:
        model=directory("results/runs/{experiment}/{arm}/seed{seed}/finetune/model"),
        curve=report(
            "results/runs/{experiment}/{arm}/seed{seed}/finetune/curve.tsv",
            caption="../docs/captions/curve.rst",
            category="Learning curves",
            subcategory="{experiment}",
            labels={"arm": "{arm}", "seed": "{seed}", "phase": "finetune"},
        ),
        report="results/runs/{experiment}/{arm}/seed{seed}/finetune/training.json",
    log:
        "results/logs/training/{experiment}/{arm}.seed{seed}.finetune.log",
    benchmark:
        "results/benchmarks/training/{experiment}/{arm}.seed{seed}.finetune.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="classification"),
    priority: AHEAD
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        from_scratch=of(arms.from_scratch, "finetune"),
        choice=lambda w, input: flags(input, "choice"),
        keep_diverged=of(arms.keep_diverged),
        lexicons=lambda w, input: flags(input, "lexicons"),
        into=lambda w, input: ["--into", *arms.switched_into(CONFIG, w)] if input.get("lexicons") else [],
        checkpoints="results/runs/{experiment}/{arm}/seed{seed}/finetune/checkpoints",
        settings=of(arms.classification_settings),
    shell:
        "exec python -m workflow_scripts.tasks.classification finetune --start {input.start:q} --train {input.train:q} --dev {input.dev:q} "
        "--model {output.model:q} --curve {output.curve:q} --report {output.report:q} --checkpoints {params.checkpoints:q} "
        "{params.choice:q} {params.keep_diverged} {params.from_scratch} {params.lexicons:q} {params.into:q} --seed {wildcards.seed} --threads {threads} "
        "--minutes {resources.runtime} --attempt {resources.attempt} --settings {params.settings:q} > {log:q} 2>&1"


# One job for all test sets: the model is loaded once, and texts of all languages are batched by length.
rule classification_prediction:
    input:
        unpack(of(arms.grid_choice)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        examples=of(arms.tested_examples),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/accuracy.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/classification/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/classification/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="classification"),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(arms.tested_languages),
        choice=lambda w, input: flags(input, "choice"),
        settings=settings_of("classification"),
    shell:
        "python -m workflow_scripts.tasks.classification predict --model {input.model:q} --examples {input.examples:q} "
        "--folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "{params.choice:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule classification_significance:
    input:
        systems=of(arms.of_runs, "predictions"),
        examples=of(arms.tested_examples),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/accuracy_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/classification/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/classification/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="classification"),
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(arms.arms),
        testsets=of(arms.testsets),
        seeds=of(arms.seeds),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.classification compare --systems {input.systems:q} --examples {input.examples:q} --output {output:q} "
        "--names {params.names:q} --testsets {params.testsets:q} --seeds {params.seeds} --settings {params.settings:q} > {log:q} 2>&1"
