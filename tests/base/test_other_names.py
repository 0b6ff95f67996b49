"""Other names of keywords: rho, as papers call the load, and former names."""

from collections.abc import Callable
from typing import Any

import pytest

from evenly import InputError, Scenario, theory, tune

FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "solve_exact": (theory.solve_exact, {"pools": 3, "capacity": 4}),
    "predict_equilibrium": (theory.predict_equilibrium, {}),
    "predict_fluid": (theory.predict_fluid, {"horizon": 1.0, "points": 3}),
    "power_of_d_fluid": (theory.power_of_d_fluid, {"horizon": 1.0, "points": 3}),
    "random_fluid": (theory.random_fluid, {"horizon": 1.0, "points": 3}),
    "predict_diffusion": (theory.predict_diffusion, {"points": 3, "paths": 1}),
    "predict_settling": (theory.predict_settling, {"alpha": 0.9}),
    "predict_stability": (theory.predict_stability, {"pools": 30, "alpha": 0.8}),
    "stable_pools": (theory.stable_pools, {"alpha": 0.8}),
    "predict_best_utility": (theory.predict_best_utility, {"sizes": "2*1,1*2"}),
    "settled_threshold": (theory.settled_threshold, {"alpha": 0.9}),
    "is_optimal": (theory.is_optimal, {"alpha": 0.9}),
    "settle_time_bound": (theory.settle_time_bound, {"alpha": 0.9}),
    "settled_distance_bound": (theory.settled_distance_bound, {"alpha": 0.9}),
    "can_settle_above": (theory.can_settle_above, {"alpha": 0.9}),
    "tune": (tune, {"alpha": 0.9}),
    "Scenario": (Scenario, {"pools": 3}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rho_is_the_load(name: str) -> None:
    function, more = FUNCTIONS[name]
    assert repr(function(rho=2.5, **more)) == repr(function(load=2.5, **more))


@pytest.mark.parametrize("both", [{"rho": 2, "load": 2}, {"load": 2, "rho": 2}])
@pytest.mark.parametrize("name", ["solve_exact", "Scenario"])
def test_a_keyword_given_in_both_spellings_is_rejected(name: str, both: dict[str, int]) -> None:
    function, more = FUNCTIONS[name]
    with pytest.raises(InputError, match=r"^Give load once: rho is another name of it\.$"):
        function(**both, **more)


def test_all_other_names_work_where_the_keyword_does() -> None:
    system: dict[str, Any] = {"policy": "power-of-d", "pools": 3, "load": 2, "capacity": 4}
    former: dict[str, Any] = {"choices": 3}
    law = theory.solve_exact(**system, **former)
    assert repr(law) == repr(theory.solve_exact(**system, sample_size=3))
