"""The figures of programs/predicted_step.py as a table."""


def table(figures):
    """Markdown, from {metric: value}."""
    lines = [
        "| program | measured ms | predicted ms | predicted / measured | from one run | unmeasured ms |",
        "|---|---|---|---|---|---|",
    ]
    for metric, real in figures.items():
        name, _, what = metric.rpartition(": ")
        if what == "measured":
            predicted, low, high, estimate = (
                figures[f"{name}: {key}"] for key in ("predicted", "lowest", "highest", "estimate")
            )
            lines.append(
                f"| {name} | {real:.3f} | {predicted:.3f} | {predicted / real:.2f} | "
                f"{low / real:.2f} to {high / real:.2f} | {estimate:.3f} |"
            )
    return "\n".join(lines)
