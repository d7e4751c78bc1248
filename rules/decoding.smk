rule decoding:
    input:
        unpack(of(arms.writing_plugin)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        source=of(arms.test_text, 0),
    output:
        hypotheses="results/runs/{experiment}/{arm}/seed{seed}/{testset}.hyp",
        report="results/runs/{experiment}/{arm}/seed{seed}/{testset}.decoding.json",
    log:
        "results/logs/decoding/{experiment}/{arm}.seed{seed}.{testset}.log",
    benchmark:
        "results/benchmarks/decoding/{experiment}/{arm}.seed{seed}.{testset}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="corpora"),
        seed=r"[1-9]\d*",  # seed 0 is `trivial`'s
    priority: of(urgency.of_score)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        languages=of(arms.test_direction),
        learnt_from=of(arms.learnt_source),
        documents=of(arms.documents),
        settings=settings_of("decoding"),
    shell:
        "python -m workflow_scripts.models.decoding --model {input.model:q} --source {input.source:q} "
        "--hypotheses {output.hypotheses:q} --report {output.report:q} --languages {params.languages:q} {params.learnt_from:q} {params.documents} "
        "--threads {threads} --seed {wildcards.seed} --settings {params.settings:q} > {log:q} 2>&1"


# the targets of arms that learn what another arm writes (`targets_from`)
rule distillation:
    input:
        unpack(of(arms.writing_plugin)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        source=of(arms.experiment_text, "train", 0),
    output:
        targets="results/runs/{experiment}/{arm}/seed{seed}/distilled.txt",
        report="results/runs/{experiment}/{arm}/seed{seed}/distilled.json",
    log:
        "results/logs/distillation/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/distillation/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="corpora"),
        seed=r"[1-9]\d*",
    priority: of(urgency.of_training)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        languages=of(arms.trained_direction),
        documents=of(arms.documents),
        pairs=of(arms.pairs_written),
        settings=of(arms.target_decoding),
    shell:
        "python -m workflow_scripts.training.distilling --model {input.model:q} --source {input.source:q} "
        "--targets {output.targets:q} --report {output.report:q} --languages {params.languages:q} --pairs {params.pairs} {params.documents} "
        "--threads {threads} --seed {wildcards.seed} --settings {params.settings:q} > {log:q} 2>&1"


# not part of a run: snakemake results/runs/help-de-en/csr/seed1/pages.nbest.tsv
rule n_best:
    input:
        unpack(of(arms.writing_plugin)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        source=of(arms.test_text, 0),
    output:
        n_best="results/runs/{experiment}/{arm}/seed{seed}/{testset}.nbest.tsv",
    log:
        "results/logs/decoding/{experiment}/{arm}.seed{seed}.{testset}.nbest.log",
    benchmark:
        "results/benchmarks/decoding/{experiment}/{arm}.seed{seed}.{testset}.nbest.tsv"
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        languages=of(arms.test_direction),
        learnt_from=of(arms.learnt_source),
        documents=of(arms.documents),
        settings=settings_of("decoding"),
    shell:
        "python -m workflow_scripts.models.decoding --model {input.model:q} --source {input.source:q} "
        "--n-best {output.n_best:q} --languages {params.languages:q} {params.learnt_from:q} {params.documents} --threads {threads} "
        "--seed {wildcards.seed} --settings {params.settings:q} > {log:q} 2>&1"
