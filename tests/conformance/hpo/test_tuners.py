"""Every built-in tuner against the shipped suite."""

from typing import ClassVar

from nni.hpo import (
    NSGA2,
    AnnealTuner,
    AutoTuner,
    BatchTuner,
    CmaEs,
    DNGOTuner,
    EvolutionTuner,
    GPTuner,
    GridSearchTuner,
    HyperoptTuner,
    MetisTuner,
    NetworkMorphismTuner,
    PBTTuner,
    PortfolioTuner,
    RandomTuner,
    SMACTuner,
    TPETuner,
    Tuner,
)
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of, scalar_metric
from nni.testing import TunerConformance
from tests.support.search_spaces import (
    BATCH,
    EACH_TYPE,
    GRID,
    GRID_NESTED,
    METIS,
    NESTED,
    NUMBERS,
    SMAC,
)

SHORT_ASK_S = 0.02
"""Fewer candidates an ask, by the same code; `TestGP` has the default."""


class TestAuto(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return AutoTuner("maximize", seed=seed, ask_time_limit=0.01)


class TestAutoNested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return AutoTuner(seed=seed, ask_time_limit=0.01)


class TestAutoFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return AutoTuner(seed=seed, ask_time_limit=0.01)


class TestAutoEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return AutoTuner(seed=seed)


class TestCmaEs(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return CmaEs("minimize", population_size=6, seed=seed)


class TestCmaEsFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return CmaEs(seed=seed)


class TestCmaEsOnlyChoices(TunerConformance):
    search_space: ClassVar[JsonValue] = {"choice": EACH_TYPE["choice"]}

    def make(self, seed: int) -> Tuner:
        return CmaEs(seed=seed)


class TestCmaEsEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return CmaEs(seed=seed)


class TestNSGA2(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return NSGA2("minimize", population_size=8, seed=seed)


class TestNSGA2Nested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return NSGA2(population_size=8, seed=seed)


class TestNSGA2Finite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return NSGA2(population_size=4, seed=seed)


class TestNSGA2EmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return NSGA2(seed=seed)


class TestTPE(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return TPETuner("maximize", seed=seed)


class TestTPENested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return TPETuner(seed=seed)


class TestTPEFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return TPETuner(seed=seed)


class TestTPEEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return TPETuner(seed=seed)


class TestTPEParallelMin(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return TPETuner("minimize", parallel_optimize=True, constant_liar_type="min", seed=seed)


class TestTPEParallelMean(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return TPETuner("minimize", parallel_optimize=True, constant_liar_type="mean", seed=seed)


class TestRandom(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return RandomTuner(seed=seed)


class TestRandomNested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return RandomTuner(seed=seed)


class TestHyperoptTunerTPE(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return HyperoptTuner("tpe", seed=seed)


class TestHyperoptTunerRandom(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return HyperoptTuner("random_search", seed=seed)


class TestGridSearch(TunerConformance):
    search_space = GRID
    finite_size = 18

    def make(self, seed: int) -> Tuner:
        del seed  # a grid draws nothing
        return GridSearchTuner()


class TestGridSearchNested(TunerConformance):
    search_space = GRID_NESTED
    finite_size = 8

    def make(self, seed: int) -> Tuner:
        del seed
        return GridSearchTuner()


class TestBatchTuner(TunerConformance):
    search_space = BATCH
    finite_size = 3
    standard_space = False

    def make(self, seed: int) -> Tuner:
        del seed
        return BatchTuner()


class TestAnneal(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return AnnealTuner("maximize", seed=seed)


class TestAnnealNested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return AnnealTuner(seed=seed)


class TestAnnealEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return AnnealTuner(seed=seed)


class TestHyperoptTunerAnneal(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return HyperoptTuner("anneal", seed=seed)


class TestEvolution(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return EvolutionTuner("maximize", population_size=8, seed=seed)


class TestEvolutionNested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return EvolutionTuner("minimize", population_size=8, seed=seed)


class TestEvolutionSmallest(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return EvolutionTuner(population_size=1, seed=seed)


class TestEvolutionEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return EvolutionTuner(population_size=4, seed=seed)


class TestPBT(TunerConformance):
    search_space = EACH_TYPE
    extra_keys = frozenset({"load_checkpoint_dir", "save_checkpoint_dir"})

    def make(self, seed: int) -> Tuner:
        return PBTTuner(all_checkpoint_dir="/checkpoints", population_size=4, seed=seed)


class TestPBTSmallest(TunerConformance):
    search_space = GRID
    extra_keys = frozenset({"load_checkpoint_dir", "save_checkpoint_dir"})

    def make(self, seed: int) -> Tuner:
        return PBTTuner(all_checkpoint_dir="/checkpoints", population_size=1, seed=seed)


class TestPBTAllExplore(TunerConformance):
    search_space = EACH_TYPE
    extra_keys = frozenset({"load_checkpoint_dir", "save_checkpoint_dir"})

    def make(self, seed: int) -> Tuner:
        return PBTTuner("minimize", "/checkpoints", 5, fraction=1.0, seed=seed)


class TestPortfolio(TunerConformance):
    search_space = EACH_TYPE

    def make(self, seed: int) -> Tuner:
        return PortfolioTuner(["TPE", "Random", "Anneal"], seed=seed)


class TestPortfolioNested(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        tuners = ["Random", {"name": "Evolution", "classArgs": {"population_size": 4}}]
        return PortfolioTuner(tuners, "bandit", seed=seed)


class TestPortfolioShared(TunerConformance):
    search_space = NESTED

    def make(self, seed: int) -> Tuner:
        return PortfolioTuner(["TPE", "TPE"], "bandit", share_results=True, seed=seed)


class TestPortfolioWithOneThatEnds(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return PortfolioTuner(["GridSearch", "TPE"], seed=seed)


class TestPortfolioEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return PortfolioTuner(["TPE", "Random"], seed=seed)


class TestGP(TunerConformance):
    search_space = NUMBERS

    def make(self, seed: int) -> Tuner:
        return GPTuner("maximize", seed=seed)


class TestGPBounds(TunerConformance):
    search_space = METIS

    def make(self, seed: int) -> Tuner:
        return GPTuner(
            "minimize",
            utility="ucb",
            nu=1.2,
            cold_start_num=2,
            ask_time_limit=SHORT_ASK_S,
            seed=seed,
        )


class TestGPFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return GPTuner(
            "minimize",
            utility="poi",
            xi=0.01,
            cold_start_num=3,
            ask_time_limit=SHORT_ASK_S,
            seed=seed,
        )


class TestGPEmptySpace(TunerConformance):
    search_space: ClassVar[JsonValue] = {}

    def make(self, seed: int) -> Tuner:
        return GPTuner(cold_start_num=2, seed=seed)


class _TwoLosses(GPTuner):
    """Takes a number for two opposed losses, which is what the suite reports."""

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        super().receive_trial_result(parameter_id, parameters, _two(value), **kwargs)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        super().import_data([{**sample, "value": _two(sample.get("value"))} for sample in data])


def _two(value: JsonValue) -> JsonValue:
    number = scalar_metric(value)
    return value if number is None else {"one": number, "other": 1 - number}


def _two_losses(seed: int) -> Tuner:
    tuner = _TwoLosses(cold_start_num=3, ask_time_limit=SHORT_ASK_S, seed=seed)
    tuner.set_objectives(objectives_of({"one": "minimize", "other": "maximize"}))
    return tuner


class TestGPTwoLosses(TunerConformance):
    search_space = EACH_TYPE
    rounds = 20  # models propose from the fourth on

    def make(self, seed: int) -> Tuner:
        return _two_losses(seed)


class TestGPTwoLossesNested(TunerConformance):
    search_space = NESTED
    rounds = 20  # models propose from the fourth on

    def make(self, seed: int) -> Tuner:
        return _two_losses(seed)


class TestGPTwoLossesFinite(TunerConformance):
    search_space = GRID
    rounds = 20  # models propose from the fourth on

    def make(self, seed: int) -> Tuner:
        return _two_losses(seed)


class TestMetis(TunerConformance):
    search_space = METIS

    def make(self, seed: int) -> Tuner:
        return MetisTuner(
            "maximize",
            cold_start_num=5,
            exploration_probability=0.5,
            ask_time_limit=SHORT_ASK_S,
            seed=seed,
        )


class TestMetisResampling(TunerConformance):
    search_space = METIS

    def make(self, seed: int) -> Tuner:
        return MetisTuner(
            no_resampling=False, cold_start_num=1, ask_time_limit=SHORT_ASK_S, seed=seed
        )


class TestMetisFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return MetisTuner("minimize", no_candidates=True, seed=seed)


class TestDNGO(TunerConformance):
    search_space = NUMBERS

    def make(self, seed: int) -> Tuner:
        return DNGOTuner("maximize", 200, 8, 20, seed=seed)


class TestDNGOFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return DNGOTuner("minimize", 50, 1, 20, seed=seed)


class TestNetworkMorphism(TunerConformance):
    search_space: ClassVar[JsonValue] = {}
    rounds = 15  # a model proposes from the second on
    standard_space = False

    def make(self, seed: int) -> Tuner:
        return NetworkMorphismTuner(input_width=8, default_model_width=8, seed=seed)


class TestNetworkMorphismMinimize(TunerConformance):
    search_space: ClassVar[JsonValue] = {}
    rounds = 15  # a model proposes from the second on
    standard_space = False

    def make(self, seed: int) -> Tuner:
        return NetworkMorphismTuner(
            optimize_mode="minimize", input_width=4, default_model_len=1, t_min=0.1, seed=seed
        )


class TestSMAC(TunerConformance):
    search_space = SMAC

    def make(self, seed: int) -> Tuner:
        return SMACTuner("maximize", seed=seed)


class TestSMACFinite(TunerConformance):
    search_space = GRID

    def make(self, seed: int) -> Tuner:
        return SMACTuner("minimize", seed=seed)


class TestSMACDedup(TunerConformance):
    search_space = GRID
    finite_size = 18

    def make(self, seed: int) -> Tuner:
        return SMACTuner("minimize", config_dedup=True, seed=seed)
