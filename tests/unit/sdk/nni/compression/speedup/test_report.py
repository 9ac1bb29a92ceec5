"""Texts of reports."""

from nni.compression.speedup.report import KeptChannels, SpeedupReport


def test_a_report_lists_what_stayed_and_why() -> None:
    report = SpeedupReport(
        error=1e-7,
        parameters_before=200,
        parameters_after=50,
        kept=(KeptChannels("a", 1, "first"), KeptChannels("b", 2, "second")),
        fixed={"c.weight": "third"},
        changed_norms=("d",),
    )

    assert str(report).splitlines() == [
        "parameters 200 -> 50 (25.0%), error 1.0e-07",
        "a: 1 channel stays: first",
        "b: 2 channels stay: second",
        "c.weight: third",
        "d: its statistics changed",
    ]
