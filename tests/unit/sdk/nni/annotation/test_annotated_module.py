from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from nni.annotation.annotated_module import AnnotatedModule
from nni.annotation.errors import AnnotationError
from tests.support.converted_code import run_converted
from tests.support.trial_channels import InMemoryTrialChannel

PATH = Path("models/train.py")


def module(code: str) -> AnnotatedModule:
    return AnnotatedModule(PATH, dedent(code).encode())


def converted(code: str) -> bytes:
    found = module(code)
    return found.converted([one.name for one in found.hyperparameters])


def run(code: str, parameters: dict[str, Any], **names: Any) -> dict[str, Any]:
    return run_converted(converted(code), parameters, **names)


def test_variable_gets_the_value_of_the_configuration() -> None:
    names = run(
        """
        '''@nni.variable(nni.uniform(0.1, 0.5), name=rate)'''
        rate = 0.3
        """,
        {"rate": 0.2},
    )

    assert names["rate"] == 0.2


def test_variable_with_a_type_hint_keeps_it() -> None:
    names = run(
        """
        '''@nni.variable(nni.uniform(0.1, 0.5), name=rate)'''
        rate: float = 0.3
        """,
        {"rate": 0.2},
    )

    assert names["rate"] == 0.2
    assert names["__annotations__"] == {"rate": "float"} or "rate" in names["__annotations__"]


def test_default_is_not_evaluated() -> None:
    names = run(
        """
        '''@nni.variable(nni.uniform(0.1, 0.5), name=rate)'''
        rate = never_defined()
        """,
        {"rate": 0.2},
    )

    assert names["rate"] == 0.2


def test_annotations_work_at_any_depth() -> None:
    names = run(
        """
        class Model:
            '''@nni.variable(nni.choice(1, 2), name=layers)'''
            layers = 1

            def fit(self):
                '''@nni.variable(nni.choice(1, 2), name=self.width)'''
                self.width = 1

                def inner():
                    try:
                        '''@nni.variable(nni.choice(1, 2), name=depth)'''
                        depth = 1
                    finally:
                        pass
                    match depth:
                        case _:
                            '''@nni.variable(nni.choice(1, 2), name=height)'''
                            height = 1
                    return depth, height

                return inner()

        async def later():
            async with lock:
                '''@nni.variable(nni.choice(1, 2), name=late)'''
                late = 1

        model = Model()
        answer = model.fit()
        """,
        {"layers": 2, "self.width": 3, "depth": 4, "height": 5},
    )

    assert (names["model"].layers, names["model"].width) == (2, 3)
    assert names["answer"] == (4, 5)


def test_annotation_in_a_loop_reads_the_same_value_again() -> None:
    names = run(
        """
        seen = []
        for _ in range(3):
            '''@nni.variable(nni.choice([0.1], [0.2]), name=rate)'''
            rate = [0.1]
            seen.append(tuple(rate))
            rate.append("changed by the script")
        """,
        {"rate": [0.2]},
    )

    assert names["seen"] == [(0.2,)] * 3


def test_expression_among_options_is_evaluated_in_its_place() -> None:
    code = """
        base = 10

        def f(scale):
            '''@nni.variable(nni.choice(base * scale, (1, 2), lambda: scale, 7, "text"), name=x)'''
            x = 0
            return x

        answer = f(3)
        """

    assert module(code).hyperparameters[0].wire_values() == [
        "base * scale",
        "(1, 2)",
        "lambda: scale",
        7,
        "text",
    ]
    assert run(code, {"x": "base * scale"})["answer"] == 30
    assert run(code, {"x": "(1, 2)"})["answer"] == (1, 2)
    assert run(code, {"x": "lambda: scale"})["answer"]() == 3
    assert run(code, {"x": 7})["answer"] == 7
    assert run(code, {"x": "text"})["answer"] == "text"


def test_string_and_expression_of_the_same_text_differ() -> None:
    code = """
        adam = object()
        '''@nni.variable(nni.choice("adam", adam), name=x)'''
        x = "adam"
        """

    assert module(code).hyperparameters[0].wire_values() == ["adam", "(adam)"]
    assert run(code, {"x": "adam"})["x"] == "adam"
    names = run(code, {"x": "(adam)"})
    assert names["x"] is names["adam"]


@pytest.mark.claim("hpo", 20)
@pytest.mark.parametrize("chosen", ["left(calls, 1)", "right(calls, size=2)"])
def test_only_the_chosen_call_happens(chosen: str) -> None:
    code = """
        def left(calls, size):
            calls.append("left")
            return size

        def right(calls, size):
            calls.append("right")
            return size * 10

        '''@nni.function_choice(left(calls, 1), right(calls, size=2), name=left)'''
        answer = 1 + left(calls, 5)
        """
    calls: list[str] = []

    names = run(code, {"left": chosen}, calls=calls)

    assert calls == [chosen.split("(", maxsplit=1)[0]]
    assert names["answer"] == {"left": 2, "right": 21}[calls[0]]
    assert module(code).hyperparameters[0].wire_values() == [
        "left(calls, 1)",
        "right(calls, size=2)",
    ]


def test_function_choice_reaches_methods_headers_and_await() -> None:
    names = run(
        """
        import asyncio

        class Net:
            async def pool(self, size): return [size]
            async def average(self, size): return [-size]

        async def main(net):
            '''@nni.function_choice(net.pool(2), net.average(2), name=net.pool)'''
            for item in await net.pool(9):
                answer.append(item)

        answer = []
        asyncio.run(main(Net()))
        """,
        {"net.pool": "net.average(2)"},
    )

    assert names["answer"] == [-2]


def test_reports_go_out_in_their_line() -> None:
    trial = InMemoryTrialChannel({})
    code = """
        for epoch in range(2):
            '''@nni.report_intermediate_result(epoch * 2)'''
        '''@nni.report_final_result({"default": epoch,
            "loss": 0.5})'''
        """

    run_converted(converted(code), trial)

    assert trial.metrics == [
        ("PERIODICAL", 0),
        ("PERIODICAL", 2),
        ("FINAL", {"default": 1, "loss": 0.5}),
    ]


@pytest.mark.parametrize(
    "head",
    [
        "",
        "#!/usr/bin/env python3\n# a comment\n\n",
        '"""Doc."""\n',
        '"""Doc\n\nof three lines."""\nfrom __future__ import annotations\n',
        "from __future__ import annotations; import os\n",
        '"""Doc."""\n\nimport os\n',
        "@staticmethod\ndef first(): pass\n",
        "if True: pass\n",
        "import os\n",
        "'''@nni.report_intermediate_result(0)'''\n",
    ],
)
def test_configuration_is_there_before_the_first_statement(head: str) -> None:
    code = f"{head}'''@nni.variable(nni.choice(1, 2), name=x)'''\nx = 1\nline = here()\n"
    names: dict[str, Any] = {"here": lambda: sys._getframe(1).f_lineno}

    found = run(code, {"x": 2}, **names)

    shift = 1 if re.match(r"@|if", head) else 0  # no line above them could take the import
    assert found["x"] == 2
    assert found["line"] == code.count("\n") + shift


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\ny = 1", 1, "assigns to y"),
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx += 1", 1, r"is 'x \+= 1'"),
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx: int", 1, "is 'x: int'"),
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx = y = 1", 1, "is 'x = y = 1'"),
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx, y = 1, 2", 1, "assigns to"),
        ("'''@nni.variable(nni.uniform(0, 1), name=x)'''\nprint(1)", 1, r"is 'print\(1\)'"),
        ("if 1:\n    '''@nni.variable(nni.uniform(0, 1), name=x)'''\nx = 1", 2, "nothing follows"),
        ("'''@nni.function_choice(f(1), g(1), name=f)'''", 1, "nothing follows"),
        ("'''@nni.function_choice(f(1), g(1), name=f)'''\nx = g(1)", 1, r"is 'x = g\(1\)'"),
        ("'''@nni.function_choice(f(1), g(1), name=f)'''\nf(f(1))", 1, "calls it 2 times"),
        ("'''@nni.function_choice(f(1), g(1), name=f)'''\nprint(f'{f(1)}')", 1, "the next"),
        ("'''@nni.function_choice(f(1), g(1), name=f)'''\nif x:\n    f(1)", 1, "is 'if x:'"),
        ("x = 1\n\n'''@nni.report(x)'''", 3, "must be one of @nni.variable"),
        ("x = 1\n'''@nni.variable(nni.uniform(0, 1))'''\nx = 1", 2, "must have a name"),
        ("x = 1\nprint 'x'\n", 2, "is not Python"),
        ("x = '\x00'", 0, "is not Python"),
    ],
)
@pytest.mark.claim("hpo", 19)
def test_broken_rule_names_file_and_line(code: str, line: int, message: str) -> None:
    with pytest.raises(AnnotationError, match=message) as raised:
        AnnotatedModule(PATH, code.encode())

    assert (raised.value.path, raised.value.line) == (PATH, line)
    assert str(raised.value).startswith(f"{PATH}:{line}: " if line else f"{PATH}: ")


@pytest.mark.parametrize("first", ["x = 1", "if True: pass"])
def test_expression_that_is_illegal_in_its_place_names_the_line(first: str) -> None:
    code = f"{first}\n'''@nni.report_final_result((yield))'''\n"

    with pytest.raises(AnnotationError, match="'yield' outside function") as raised:
        converted(code)

    assert raised.value.line == 2


def test_expression_that_the_encoding_lacks_is_refused() -> None:
    code = b"# coding: latin-1\n'''@nni.report_final_result('\\u4e2d')'''\n"

    with pytest.raises(AnnotationError, match="must be written in the file's encoding"):
        AnnotatedModule(PATH, code).converted([])


def test_hundreds_of_expressions_are_fine() -> None:
    options = ", ".join(f"f({number})" for number in range(500))

    names = run(
        f"""
        def f(number): return number * 10

        '''@nni.variable(nni.choice({options}), name=x)'''
        x = 0
        """,
        {"x": "f(499)"},
    )

    assert names["x"] == 4990


def test_file_that_only_mentions_annotations_has_none() -> None:
    assert not module(
        "# '''@nni.variable(nni.uniform(0, 1), name=x)'''\nx = '@nni.'\n"
    ).is_annotated


@pytest.mark.claim("hpo", 19)
def test_annotated_script_runs_unchanged_without_nni(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            """
            '''@nni.variable(nni.uniform(0.1, 0.5), name=rate)'''
            rate = 0.3
            '''@nni.function_choice(min(1, 2), max(1, 2), name=min)'''
            print(rate, min(1, 2))
            '''@nni.report_final_result(rate)'''
            """
        )
    )

    done = subprocess.run(
        # -I -S: nothing that is installed can be found, NNI neither.
        [sys.executable, "-I", "-S", str(script)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "0.3 1\n"
    assert run(script.read_text(), {"rate": 0.2, "min": "max(1, 2)"})["rate"] == 0.2
