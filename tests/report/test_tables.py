"""Tables as Markdown and LaTeX."""

from workflow_scripts.report.tables import latex, markdown

ROWS = [["arm", "BLEU", "p|q"], ["csr_1", "13.24 ± 0.17 ‡ ‡", "−0.5 & 35 %"]]


def test_markdown():
    assert markdown(ROWS).splitlines() == ["| arm | BLEU | p\\|q |", "| --- | ---: | ---: |", "| csr_1 | 13.24 ± 0.17 ‡ ‡ | −0.5 & 35 % |"]


def test_latex():
    lines = latex(ROWS).splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}" and lines[1:4:2] == [r"\toprule", r"\midrule"] and lines[-1] == r"\end{tabular}"
    assert lines[2] == r"arm & BLEU & p\textbar{}q \\"  # else LaTeX prints a dash
    assert lines[4] == r"csr\_1 & 13.24 $\pm$ 0.17 $^\ddagger$ $^\ddagger$ & $-$0.5 \& 35 \% \\"
