# Answering and ranking take it over with settings of their own. Classification, which may switch words meanwhile, has another.
rule labelling_finetune:
    input:
        unpack(of(arms.grid_choice)),
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
        experiment=experiments_with(task="labelling"),
    priority: AHEAD
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        # Snakemake records what is asked of the wildcards alone, and would train anew all that was trained before this was recorded.
        task=lambda w, input: task_name(CONFIG.experiments[w.experiment]),
        from_scratch=of(arms.from_scratch, "finetune"),
        choice=lambda w, input: flags(input, "choice"),
        keep_diverged=of(arms.keep_diverged),
        checkpoints="results/runs/{experiment}/{arm}/seed{seed}/finetune/checkpoints",
        settings=of(arms.labelling_settings),
    shell:
        "exec python -m workflow_scripts.tasks.{params.task} finetune --start {input.start:q} --train {input.train:q} --dev {input.dev:q} "
        "--model {output.model:q} --curve {output.curve:q} --report {output.report:q} --checkpoints {params.checkpoints:q} "
        "{params.choice:q} {params.keep_diverged} {params.from_scratch} --seed {wildcards.seed} --threads {threads} "
        "--minutes {resources.runtime} --attempt {resources.attempt} --settings {params.settings:q} > {log:q} 2>&1"


# One job for all test sets: the model is loaded once, and sentences of all languages are batched by length.
rule labelling_prediction:
    input:
        unpack(of(arms.grid_choice)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        train=of(arms.labelled_file, "train", ".tsv"),
        examples=of(arms.tested_examples),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/labelling.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/labelling/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/labelling/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="labelling"),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(arms.tested_languages),
        choice=lambda w, input: flags(input, "choice"),
        settings=settings_of("labelling"),
    shell:
        "python -m workflow_scripts.tasks.labelling predict --model {input.model:q} --train {input.train:q} --examples {input.examples:q} "
        "--folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "{params.choice:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule labelling_significance:
    input:
        systems=of(arms.of_runs, "predictions"),
        examples=of(arms.tested_examples),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/labelling_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/labelling/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/labelling/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(task="labelling"),
    conda:
        "../envs/crossgap.yaml"
    params:
        names=of(arms.arms),
        testsets=of(arms.testsets),
        seeds=of(arms.seeds),
        metric=of(arms.labelling_metric),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.labelling compare --systems {input.systems:q} --examples {input.examples:q} --output {output:q} "
        "--names {params.names:q} --testsets {params.testsets:q} --seeds {params.seeds} --metric {params.metric} "
        "--settings {params.settings:q} > {log:q} 2>&1"
