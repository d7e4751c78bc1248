rule held_out:
    input:
        sources=of(text_inputs.corpus_sources),
    output:
        a="results/corpora/{corpus}.{a}-{b}/{part}.{a}",
        b="results/corpora/{corpus}.{a}-{b}/{part}.{b}",
    log:
        "results/logs/corpus/{corpus}.{a}-{b}/{part}.log",
    benchmark:
        "results/benchmarks/corpus/{corpus}.{a}-{b}/{part}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        name=lambda wildcards: wildcards.part.removeprefix("test/"),
        settings=of(text_inputs.corpus_settings),
    shell:
        "python -m workflow_scripts.text.corpus held-out --name {params.name:q} "
        "--output-a {output.a:q} --output-b {output.b:q} --settings {params.settings:q} > {log:q} 2>&1"


rule corpus:
    input:
        sources=of(text_inputs.corpus_sources),
        held_out_a=of(text_inputs.held_out, "a"),
        held_out_b=of(text_inputs.held_out, "b"),
        others_a=of(text_inputs.others_held_out, "a"),
        others_b=of(text_inputs.others_held_out, "b"),
    output:
        a="results/corpora/{corpus}.{a}-{b}/train.{a}",
        b="results/corpora/{corpus}.{a}-{b}/train.{b}",
        report="results/corpora/{corpus}.{a}-{b}/corpus.json",
    log:
        "results/logs/corpus/{corpus}.{a}-{b}/train.log",
    benchmark:
        "results/benchmarks/corpus/{corpus}.{a}-{b}/train.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        others=lambda w, input: flags(input, "others_a", "others_b"),
        settings=of(text_inputs.corpus_settings),
    shell:
        "python -m workflow_scripts.text.corpus train --held-out-a {input.held_out_a:q} --held-out-b {input.held_out_b:q} {params.others:q} "
        "--output-a {output.a:q} --output-b {output.b:q} --report {output.report:q} --settings {params.settings:q} > {log:q} 2>&1"
