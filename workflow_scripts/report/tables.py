"""The report's tables as text for a paper or a README. Both functions take rows of strings; the first row is the head."""

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "−": "$-$",
        "†": r"$^\dagger$",
        "‡": r"$^\ddagger$",
        "<": "$<$",
        ">": "$>$",
        "|": r"\textbar{}",
    }
)


def markdown(rows: list[list[str]]) -> str:
    """A Markdown table with pipes; all columns but the first are aligned right."""
    head, *body = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def latex(rows: list[list[str]]) -> str:
    """A LaTeX tabular with the rules of the package booktabs."""
    head, *body = [" & ".join(map(escaped, row)) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"])


def escaped(text: str) -> str:
    """A text as LaTeX prints it."""
    return text.translate(_LATEX)
