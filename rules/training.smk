rule pretext:
    input:
        unpack(of(arms.grid_choice)),
        unpack(of(arms.phase_plugins)),
        unpack(of(bridges.text)),
        start=of(arms.phase_start),
    output:
        model=directory("results/runs/{experiment}/{arm}/seed{seed}/{phase}/model"),
        curve=report(
            "results/runs/{experiment}/{arm}/seed{seed}/{phase}/curve.tsv",
            caption="../docs/captions/curve.rst",
            category="Learning curves",
            subcategory="{experiment}",
            labels={"arm": "{arm}", "seed": "{seed}", "phase": "{phase}"},
        ),
        report="results/runs/{experiment}/{arm}/seed{seed}/{phase}/training.json",
    log:
        "results/logs/training/{experiment}/{arm}.seed{seed}.{phase}.log",
    benchmark:
        "results/benchmarks/training/{experiment}/{arm}.seed{seed}.{phase}.tsv"
    wildcard_constraints:
        phase=r"pretext|\d+-[\w-]+",
    priority: of(urgency.of_training)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        command=of(bridges.command),
        languages=of(bridges.languages),
        documents=of(bridges.with_documents),
        from_scratch=of(arms.from_scratch),
        checkpoints="results/runs/{experiment}/{arm}/seed{seed}/{phase}/checkpoints",
        text=lambda w, input: flags(input, "noised", "train", "dev", "choice"),
        chain=of(arms.phase_flags),
        keep_diverged=of(arms.keep_diverged),
        settings=of(arms.phase_settings),
    shell:
        "exec python -m workflow_scripts.training.training {params.command:q} --start {input.start:q} {params.text:q} --model {output.model:q} "
        "--curve {output.curve:q} --report {output.report:q} --checkpoints {params.checkpoints:q} "
        "--languages {params.languages:q} {params.documents} {params.from_scratch} {params.chain:q} {params.keep_diverged} "
        "--seed {wildcards.seed} --threads {threads} --minutes {resources.runtime} --attempt {resources.attempt} "
        "--settings {params.settings:q} > {log:q} 2>&1"


rule finetune:
    input:
        unpack(of(arms.grid_choice)),
        unpack(of(arms.switching_lexicon)),
        unpack(of(arms.more_text)),
        unpack(of(arms.phase_plugins, "finetune")),
        unpack(of(arms.generator_plugin)),
        start=of(arms.phase_start, "finetune"),
        train_source=of(arms.experiment_text, "train", 0),
        train_target=of(arms.training_target),
        dev_source=of(arms.experiment_text, "dev", 0),
        dev_target=of(arms.experiment_text, "dev", 1),
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
        experiment=experiments_with(answers="text"),
    priority: of(urgency.of_training)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        languages=of(arms.trained_direction),
        documents=of(arms.documents),
        from_scratch=of(arms.from_scratch, "finetune"),
        checkpoints="results/runs/{experiment}/{arm}/seed{seed}/finetune/checkpoints",
        choice=lambda w, input: flags(input, "choice"),
        keep_diverged=of(arms.keep_diverged),
        task=of(arms.task_flags),
        more=lambda w, input: flags(input, "lexicon", "more_sources", "more_targets"),
        settings=of(arms.phase_settings, "finetune"),
    shell:
        "exec python -m workflow_scripts.training.training translate --start {input.start:q} "
        "--train-source {input.train_source:q} --train-target {input.train_target:q} "
        "--dev-source {input.dev_source:q} --dev-target {input.dev_target:q} "
        "--model {output.model:q} --curve {output.curve:q} --report {output.report:q} --checkpoints {params.checkpoints:q} "
        "--languages {params.languages:q} {params.documents} {params.from_scratch} {params.choice:q} {params.keep_diverged} {params.task:q} {params.more:q} "
        "--seed {wildcards.seed} --threads {threads} --minutes {resources.runtime} --attempt {resources.attempt} "
        "--settings {params.settings:q} > {log:q} 2>&1"
