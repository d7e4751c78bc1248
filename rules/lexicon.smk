rule lexicon:
    input:
        mapped_a="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{a}.mapped.vec",
        mapped_b="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{b}.mapped.vec",
        text_a="results/corpora/{corpus}.{a}-{b}/train.{a}",
        text_b="results/corpora/{corpus}.{a}-{b}/train.{b}",
        gold=gold_file,
    output:
        ab="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{a}-{b}.tsv",
        ba="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{b}-{a}.tsv",
        report="results/lexicons/{corpus}.{a}-{b}/{lexicon}/lexicon.json",
    log:
        "results/logs/lexicon/{corpus}.{a}-{b}/{lexicon}.log",
    benchmark:
        "results/benchmarks/lexicon/{corpus}.{a}-{b}/{lexicon}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        gold=lambda w, input: ["--gold", *input.gold] if input.gold else [],
        settings=lambda w: settings(CONFIG.lexicons[w.lexicon].lexicon),
    shell:
        "python -m workflow_scripts.lexicon --mapped-a {input.mapped_a:q} --mapped-b {input.mapped_b:q} "
        "--text-a {input.text_a:q} --text-b {input.text_b:q} --lexicon-ab {output.ab:q} --lexicon-ba {output.ba:q} "
        "--report {output.report:q} --languages {wildcards.a:q} {wildcards.b:q} {params.gold:q} "
        "--settings {params.settings:q} > {log:q} 2>&1"
