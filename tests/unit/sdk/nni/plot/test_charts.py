from nni.plot.charts import Chart, ChartAxis, Panel, Series


def test_axis_is_linear_and_continuous_by_default() -> None:
    axis = ChartAxis("loss")

    assert (axis.scale, axis.categories) == ("linear", ())


def test_charts_with_equal_content_are_equal() -> None:
    def chart() -> Chart:
        axis = ChartAxis("x")
        return Chart("title", [Panel(axis, axis, [Series("points", [1.0], [2.0])])])

    assert chart() == chart()
