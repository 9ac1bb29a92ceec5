"""Labels of the successive tuners of an experiment."""

from svc_dispatcher.domain.tuner_labels import TunerLabels


def noted(labels: TunerLabels, *used: str) -> TunerLabels:
    return labels.noted(frozenset(used))


def test_first_tuner_has_its_own_labels() -> None:
    labels = noted(TunerLabels(), "TPE")

    assert labels.distinct("TPE") == "TPE"
    assert labels.distinct("Random") == "Random"


def test_label_of_an_earlier_tuner_gets_the_number_of_the_present_one() -> None:
    labels = noted(TunerLabels(), "TPE").handed_over()

    assert labels.distinct("TPE") == "TPE (tuner 2)"
    assert labels.distinct("Random") == "Random"


def test_label_stays_the_same_once_it_is_in_the_log() -> None:
    labels = noted(TunerLabels(), "TPE").handed_over()

    labels = noted(labels, labels.distinct("TPE"))

    assert labels.distinct("TPE") == "TPE (tuner 2)"


def test_each_hand_over_has_a_label_of_its_own() -> None:
    labels = noted(TunerLabels(), "TPE").handed_over()
    labels = noted(labels, "Random").handed_over()

    assert labels.distinct("TPE") == "TPE (tuner 3)"


def test_tuner_that_suggested_nothing_takes_no_label() -> None:
    labels = noted(TunerLabels(), "Random").handed_over().handed_over()

    assert labels.distinct("TPE") == "TPE"
    assert labels.distinct("Random") == "Random (tuner 3)"


def test_label_that_a_user_chose_is_not_taken_again() -> None:
    labels = noted(TunerLabels(), "TPE", "TPE (tuner 2)").handed_over()

    assert labels.distinct("TPE") == "TPE (tuner 3)"
