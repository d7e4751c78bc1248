# The tasks for which a head is finetuned on text with labels (`workflow_scripts/tasks/head.py`), those of plugins too.
rule head_finetune:
    input:
        unpack(of(arms.grid_choice)),
        unpack(of(head_inputs.switched_while_finetuning)),
        unpack(of(head_inputs.finetuning_plugins)),
        start=of(arms.phase_start, "finetune"),
        train=of(head_inputs.finetuning_text, "train"),
        dev=of(head_inputs.finetuning_text, "dev"),
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
        experiment=experiments_with(has_head=True),
    priority: of(urgency.of_training)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        task=unrecorded(attrgetter("plan.task.name")),
        from_scratch=of(arms.from_scratch, "finetune"),
        choice=lambda w, input: flags(input, "choice"),
        keep_diverged=of(arms.keep_diverged),
        lexicons=lambda w, input: flags(input, "lexicons"),
        into=lambda w, input: ["--into", *of(bridges.switched_into)(w)] if input.get("lexicons") else [],
        checkpoints="results/runs/{experiment}/{arm}/seed{seed}/finetune/checkpoints",
        settings=of(head_inputs.finetuning_settings),
    shell:
        "exec python -m workflow_scripts.tasks.head finetune --task {params.task} --start {input.start:q} --train {input.train:q} "
        "--dev {input.dev:q} --model {output.model:q} --curve {output.curve:q} --report {output.report:q} --checkpoints {params.checkpoints:q} "
        "{params.choice:q} {params.keep_diverged} {params.from_scratch} {params.lexicons:q} {params.into:q} --seed {wildcards.seed} "
        "--threads {threads} --minutes {resources.runtime} --attempt {resources.attempt} --settings {params.settings:q} > {log:q} 2>&1"


# One job for all test sets: the model is loaded once, and rows of all languages are batched by length.
rule head_prediction:
    input:
        unpack(of(arms.grid_choice)),
        unpack(of(head_inputs.learnt_by_the_baseline)),
        unpack(of(head_inputs.scoring_plugins)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        examples=of(head_inputs.tested_examples),
    output:
        folder=report(
            directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
            patterns=["{testset}.scores.json"],
            caption="../docs/captions/predictions.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/heads/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/heads/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(has_head=True),
    priority: of(urgency.of_score)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        task=unrecorded(attrgetter("plan.task.name")),
        testsets=of(arms.testsets),
        languages=of(head_inputs.tested_languages),
        labels=unrecorded(head_inputs.label_flags),
        choice=lambda w, input: flags(input, "choice"),
        train=lambda w, input: flags(input, "train"),
        settings=of(head_inputs.head_block),
    shell:
        "python -m workflow_scripts.tasks.head predict --task {params.task} --model {input.model:q} --examples {input.examples:q} "
        "--folder {output.folder:q} --testsets {params.testsets:q} --languages {params.languages:q} {params.labels:q} "
        "{params.choice:q} {params.train:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


rule head_significance:
    input:
        unpack(of(head_inputs.scoring_plugins)),
        systems=of(arms.of_runs, "predictions"),
        examples=of(head_inputs.tested_examples),
    output:
        report(
            "results/runs/{experiment}/significance.json",
            caption="../docs/captions/predictions_significance.rst",
            category="Significance",
            subcategory="{experiment}",
            labels={"test set": "all", "arm": "every two", "seed": "each, and all"},
        ),
    log:
        "results/logs/heads/{experiment}/significance.log",
    benchmark:
        "results/benchmarks/heads/{experiment}/significance.tsv"
    wildcard_constraints:
        experiment=experiments_with(has_head=True),
    conda:
        "../envs/crossgap.yaml"
    params:
        task=unrecorded(attrgetter("plan.task.name")),
        names=of(attrgetter("plan.arms")),
        testsets=of(arms.testsets),
        languages=of(head_inputs.tested_languages),
        seeds=of(attrgetter("plan.seeds")),
        labels=unrecorded(head_inputs.label_flags),
        head=of(head_inputs.head_block),
        settings=settings_of("scores"),
    shell:
        "python -m workflow_scripts.tasks.head compare --task {params.task} --systems {input.systems:q} --examples {input.examples:q} "
        "--output {output:q} --names {params.names:q} --testsets {params.testsets:q} --languages {params.languages:q} "
        "--seeds {params.seeds} {params.labels:q} --head {params.head:q} --settings {params.settings:q} > {log:q} 2>&1"


# The models of several experiments against that of one, by the task's own tests (run/transfer_comparisons.py).
use rule head_significance as head_transfer with:
    input:
        unpack(of(head_inputs.scoring_plugins)),
        systems=of(transfer_comparisons.folders),
        examples=of(head_inputs.tested_examples),
    output:
        "results/runs/{experiment}/transfer.json",
    log:
        "results/logs/heads/{experiment}/transfer.log",
    benchmark:
        "results/benchmarks/heads/{experiment}/transfer.tsv"
    params:
        names=of(transfer_comparisons.names),
