from docs.generator.markdown import cell, code, page, table


def test_cell_is_one_line_with_escaped_bars() -> None:
    assert cell("a |\n  b") == "a \\| b"


def test_table_has_a_rule_below_its_header() -> None:
    assert table(["x", "y"], [["1", "2"]]) == "| x | y |\n| --- | --- |\n| 1 | 2 |"


def test_code_with_a_backtick_gets_a_longer_fence() -> None:
    assert [code("a"), code("a`b"), code("")] == ["`a`", "`` a`b ``", ""]


def test_page_leaves_empty_blocks_out() -> None:
    assert page("# A", "", "b\n") == "# A\n\nb\n"
