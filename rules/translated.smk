rule translated:
    input:
        unpack(of(text_inputs.translating_plugin)),
        model=of(text_inputs.translating_model),
        train=lambda w: paths.labelled_file(CONFIG, w.labelled, "train", ".tsv"),
        held_out=of(text_inputs.translated_before),
    output:
        examples="results/labelled/{labelled}/translated/{name}.{lang}.tsv",
        sentences="results/labelled/{labelled}/translated/{name}.{lang}",
        report="results/labelled/{labelled}/translated/{name}.{lang}.json",
    log:
        "results/logs/translated/{labelled}/{name}.{lang}.log",
    benchmark:
        "results/benchmarks/translated/{labelled}/{name}.{lang}.tsv"
    wildcard_constraints:
        name=r"[\w-]+",
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        unit=lambda w: CONFIG.labelled[w.labelled].unit,
        language=lambda w: CONFIG.labelled[w.labelled].language,
        held_out=lambda w, input: flags(input, "held_out"),
        targets=of(text_inputs.translated_targets),
        form=unrecorded(text_inputs.translated_form),
        settings=of(text_inputs.translating_settings),
    shell:
        "python -m workflow_scripts.tasks.translated --model {input.model:q} --train {input.train:q} --examples {output.examples:q} "
        "--sentences {output.sentences:q} --report {output.report:q} --unit {params.unit} --languages {params.language} {wildcards.lang} "
        "{params.held_out:q} {params.targets} {params.form} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
