rule backbone:
    input:
        unpack(of(backbone_inputs.backbone_start)),
        text=of(backbone_inputs.backbone_text),
        task_text=of(backbone_inputs.backbone_task_text),
        held_out=of(backbone_inputs.backbone_held_out),
        bitext=of(backbone_inputs.backbone_bitext, "train"),
        bitext_dev=of(backbone_inputs.backbone_bitext, "dev"),
    output:
        model=directory("results/backbones/{backbone}/model"),
        report="results/backbones/{backbone}/backbone.json",
        curve="results/backbones/{backbone}/curve.tsv",
    log:
        "results/logs/backbone/{backbone}.log",
    benchmark:
        "results/benchmarks/backbone/{backbone}.tsv"
    priority: urgency.SHARED
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
        runtime=0,  # minutes; no limit unless the profile's set-resources name one
        attempt=lambda wildcards, attempt: attempt,
    params:
        languages=of(backbone_inputs.backbone_languages),
        task_text=lambda w, input: ["--task-text", *input.task_text] if input.task_text else [],
        held_out=lambda w, input: ["--held-out", *input.held_out] if input.held_out else [],
        bitext=lambda w, input: flags(input, "bitext", "bitext_dev"),
        start=lambda w, input: flags(input, "start"),
        encoder=of(backbone_inputs.encoder_will_do),
        head=of(backbone_inputs.loaded_for),
        checkpoints="results/backbones/{backbone}/checkpoints",
        settings=of(backbone_inputs.backbone_settings),
    shell:
        "exec python -m workflow_scripts.training.backbone --output {output.model:q} --report {output.report:q} --curve {output.curve:q} "
        "--languages {params.languages:q} {params.task_text:q} {params.held_out:q} {params.bitext:q} {params.encoder} {params.head} {params.start:q} "
        "--checkpoints {params.checkpoints:q} "
        "--threads {threads} --minutes {resources.runtime} --attempt {resources.attempt} --settings {params.settings:q} > {log:q} 2>&1"
