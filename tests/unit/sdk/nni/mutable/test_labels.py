"""Labels are placed in scopes, and stay what they are once they are complete."""

import threading

import pytest

from nni.mutable.labels import Label, auto_label, checked_label, label_scope


def test_explicit_name_is_preceded_by_the_scope() -> None:
    with label_scope("model"):
        assert auto_label("foo") == "model/foo"


def test_explicit_name_outside_any_scope_stays() -> None:
    assert auto_label("bar") == "bar"


def test_names_are_counted_in_a_scope() -> None:
    with label_scope("model"):
        assert [auto_label(), auto_label()] == ["model/1", "model/2"]


def test_nested_scopes_nest_their_names() -> None:
    with label_scope("model"):
        assert auto_label() == "model/1"
        assert auto_label() == "model/2"
        with label_scope():
            assert auto_label() == "model/3/1"
        with label_scope("cell"):
            assert auto_label("op") == "model/cell/op"
        assert auto_label() == "model/4"


def test_entering_again_restarts_the_counter() -> None:
    scope = label_scope("model")
    with scope:
        first = auto_label()
    with scope:
        second = auto_label()

    assert first == second == "model/1"


def test_entering_again_keeps_the_full_name() -> None:
    with label_scope("model"), label_scope() as scope:
        first = auto_label()
    with scope:
        assert auto_label() == first == "model/1/1"


def test_scope_within_itself_ends_twice() -> None:
    scope = label_scope("model")
    with scope:
        with scope:
            assert label_scope.current() is scope
        assert label_scope.current() is scope

    assert label_scope.current() is None


def test_automatic_label_outside_any_scope_warns() -> None:
    with pytest.warns(UserWarning, match="outside any label scope"):
        first = auto_label()
    with pytest.warns(UserWarning, match="label_scope"):
        second = auto_label()

    assert first.startswith("global/")
    assert int(second.partition("/")[2]) == int(first.partition("/")[2]) + 1


def test_complete_label_is_returned_as_it_is() -> None:
    with label_scope("model"):
        label = auto_label("foo")
        assert auto_label(label) is label

    assert auto_label(label) is label
    assert isinstance(label, str)


def test_scope_of_a_complete_label_has_its_name() -> None:
    with label_scope("model"):
        label = auto_label("cell")
    with label_scope(label):
        assert auto_label("op") == "model/cell/op"


def test_another_scope_may_be_named() -> None:
    scope = label_scope("model")
    with scope:
        pass
    with label_scope("other"):
        assert auto_label("foo", scope) == "model/foo"


@pytest.mark.parametrize("text", ["", "a/b", "/"])
def test_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="label must not be empty or contain '/'"):
        auto_label(text)
    with pytest.raises(ValueError, match="label must not be empty or contain '/'"):
        label_scope(text)


def test_only_strings_are_labels() -> None:
    with pytest.raises(TypeError, match="label must be a string, got 3"):
        checked_label(3)  # type: ignore[arg-type] # what is tested


def test_separator_is_accepted_in_a_complete_label() -> None:
    assert checked_label(Label("a/b")) == "a/b"


def test_path_is_unknown_before_the_first_entry() -> None:
    with pytest.raises(RuntimeError, match="has been entered"):
        label_scope("model").path  # noqa: B018 - it is the access that fails


def test_repr_shows_the_name() -> None:
    scope = label_scope("cell")
    assert repr(scope) == "label_scope('cell')"
    with label_scope("model"), scope:
        assert repr(scope) == "label_scope('model/cell')"


def test_scopes_of_another_thread_are_not_seen() -> None:
    seen: list[label_scope | None] = []
    with label_scope("model"):
        thread = threading.Thread(target=lambda: seen.append(label_scope.current()))
        thread.start()
        thread.join()

    assert seen == [None]


def test_scope_ends_with_an_error() -> None:
    with pytest.raises(KeyError), label_scope("model"):
        raise KeyError

    assert label_scope.current() is None
