"""Service laws: their spelling, their moments, and draws against SciPy's laws."""

import math
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim.kernels.draws import Method, draw_many, new_draws
from evenly.sim.kernels.normal import normal_quantile
from evenly.workload import service
from evenly.workload.service import EXAMPLES, ServiceLaw, empirical_law, parse_service
from tests import distributions as stats
from tests.workload.laws import Mixture, counterpart, mean_within

LAWS = [
    "exponential",
    "erlang:stages=1",
    "erlang:stages=3",
    "hyperexponential:cv=4",
    "coxian:means=1",
    "coxian:means=0.5/4,next=0.2",
    "coxian:means=1/2/3,next=0.9/0.4",
    "lognormal:cv=0.5",
    "lognormal:cv=4",
    "weibull:shape=0.5",
    "weibull:shape=3",
    "pareto:shape=1.5,ratio=1000",
    "pareto:shape=1,ratio=50",
    "pareto:shape=0.5,ratio=10",
    "pareto:shape=2.5",
]
DRAWS = 100_000


def drawn(law: ServiceLaw, count: int, seed: int = 1) -> np.ndarray:
    recipe, values = law.recipe, np.array(law.values or (1.0,))
    draws = new_draws(
        np.random.SeedSequence(seed),
        2,
        Method[recipe.method.upper()],
        np.array(recipe.numbers),
        values / values.mean(),
    )
    out = np.zeros(count)
    draw_many(draws, out)
    return out


@pytest.mark.parametrize("text", LAWS)
def test_draws_follow_the_law(text: str) -> None:
    # Kolmogorov and Smirnov's statistic exceeds 2.7 / sqrt(n) with a probability below 2 exp(-2 * 2.7^2) < 1e-6.
    sample = np.sort(drawn(parse_service(text), DRAWS if "coxian" not in text else 4000))
    chances = counterpart(text).cdf(sample)
    ranks = np.arange(sample.size + 1) / sample.size
    gap = max(np.abs(chances - ranks[:-1]).max(), np.abs(chances - ranks[1:]).max())
    assert gap < 2.7 / math.sqrt(sample.size)


@pytest.mark.parametrize("text", LAWS)
def test_every_law_has_mean_one_and_the_coefficient_of_variation_that_it_states(text: str) -> None:
    law = parse_service(text)
    assert mean_within(law, 1e7 if text != "pareto:shape=2.5" else 1e9) == pytest.approx(1, rel=1e-6)
    if hasattr(counterpart(law), "std"):
        if math.isfinite(law.recipe.third):
            assert law.recipe.third == pytest.approx(counterpart(law).moment(3), rel=1e-6)
        assert law.cv == pytest.approx(counterpart(law).std() / counterpart(law).mean(), rel=1e-6)
    elif text.startswith("hyper"):
        assert law.cv == 4
        assert law.recipe.third == pytest.approx(sum(6 * part / rate**3 for part, rate in Mixture(4)._parts))


def test_the_coxian_law_has_the_moments_of_its_phases() -> None:
    law = parse_service("coxian:means=1/2/3,next=0.9/0.4")
    matrix = counterpart(law)._matrix
    second = 2 * np.linalg.matrix_power(np.linalg.inv(matrix), 2)[0].sum()
    third = -6 * np.linalg.matrix_power(np.linalg.inv(matrix), 3)[0].sum()
    assert law.cv == pytest.approx(math.sqrt(second - 1))
    assert law.recipe.third == pytest.approx(third)


def test_the_constant_law_is_constant_and_weibull_meets_its_cv() -> None:
    assert (drawn(parse_service("deterministic"), 1000) == 1).all()
    assert parse_service("deterministic").cv == 0
    for cv in (0.02, 0.5, 1.0, 3.0, 100.0):
        assert parse_service(f"weibull:cv={cv}").cv == pytest.approx(cv)
    assert parse_service("weibull:cv=1").recipe.numbers == pytest.approx((1, 1))


def test_an_unbounded_pareto_law_may_have_an_infinite_variance_but_not_an_infinite_mean() -> None:
    assert parse_service("pareto:shape=1.5").cv == math.inf
    assert math.isfinite(parse_service("pareto:shape=2.5").cv)
    assert parse_service("pareto:shape=2.5").memory == math.inf
    with pytest.raises(InputError, match=r"shape 1 and no ratio has an infinite mean.*ratio=1000"):
        parse_service("pareto:shape=1")


def test_a_law_is_printed_as_it_is_written() -> None:
    for text in [*LAWS, *EXAMPLES[:-1], "weibull:cv=2"]:
        assert str(parse_service(text)) == text
        assert parse_service(parse_service(text)) == parse_service(text)


def test_measured_durations_keep_their_shape_and_their_unit_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "sessions, all.txt"
    file.write_text("# seconds\n30\n\n60\n0\n150\n")
    law = parse_service(f"empirical:{file}")
    assert (law.values, law.own_mean) == ((30, 60, 0, 150), 60)
    assert str(law) == f"empirical:{file}"
    assert law.cv == pytest.approx(np.std([30, 60, 0, 150]) / 60)
    counts = np.unique(drawn(law, 4000), return_counts=True)
    assert counts[0].tolist() == [0, 0.5, 1, 2.5]
    assert abs(counts[1] - 1000).max() < 5.2 * math.sqrt(4000 * 0.25 * 0.75)  # 1e-6 in all
    minutes = empirical_law([0.5, 1, 0, 2.5])
    assert minutes.cv == pytest.approx(law.cv)
    assert str(minutes) == "empirical (4 durations)"


def test_durations_can_be_a_column(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text('start,duration,"server, name"\n0,1.5,a\n1,4.5,"b,c"\n')
    assert parse_service(f"empirical:{file},column=duration").values == (1.5, 4.5)
    with pytest.raises(InputError, match=r"no column 'time'; its columns are 'start, duration, server, name'"):
        parse_service(f"empirical:{file},column=time")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no numbers"),
        ("1\n-2\n", "line 2: a time must be zero or a positive number, not '-2'"),
        ("inf\n", "line 1"),
        ("0\n0\n", "a duration above 0"),
        ("5e-324\n0\n0\n0\n", "empirical needs a mean of at least 1e-300, not 0"),
        ("\u0661\n", "line 1"),
    ],
)
def test_a_file_without_usable_durations_is_rejected(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        parse_service(f"empirical:{file}")


def test_a_file_may_have_a_byte_order_mark_and_indented_comments(tmp_path: Path) -> None:
    table, lines = tmp_path / "log.csv", tmp_path / "log.txt"
    table.write_text("duration\n3\n4\n", encoding="utf-8-sig")
    lines.write_text("3\n  # seconds\n4\n", encoding="utf-8-sig")
    for written in (f"{table},column=duration", str(lines)):
        assert parse_service(f"empirical:{written}").values == (3, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope", "service must be one of exponential, deterministic, erlang:stages=3,"),
        (3, "service must be a text such as lognormal:cv=4, not 3"),
        ("exponential:cv=1", "exponential takes no parameters"),
        ("lognormal", "lognormal needs cv, as in lognormal:cv=4"),
        ("lognormal:sd=4", "lognormal takes cv, as in lognormal:cv=4, not 'sd=4'"),
        ("lognormal:cv=4,cv=5", "give cv of lognormal once"),
        ("lognormal:cv=-1", "cv of lognormal must be a number from 1e-06 to 100, not -1"),
        ("lognormal:cv=1/2", "cv of lognormal must be a single number, not 2"),
        ("erlang:stages=0", "a whole number from 1 to 1000, not 0"),
        ("erlang:stages=2.5", "a whole number from 1 to 1000, not 2.5"),
        ("hyperexponential:cv=0.5", "must be a number from 1 to 100, not 0.5: a mixture"),
        ("coxian:means=1/2", "coxian with 2 means needs 1 numbers under next, not 0"),
        ("coxian:means=1/2,next=1.5", "a number from 0 to 1, not 1.5"),
        ("weibull", "weibull needs shape or cv"),
        ("weibull:shape=1,cv=1", "weibull needs shape or cv"),
        ("weibull:shape=0", "shape of weibull must be"),
        ("pareto:shape=0", "shape of pareto must be"),
        ("pareto:ratio=10", "pareto needs shape"),
        ("coxian:means=0", "a mean of coxian must be"),
        ("pareto:shape=2,ratio=1", "ratio of pareto must be"),
        ("empirical:", "empirical needs a file"),
        ("empirical:missing.txt", "Cannot read missing.txt"),
        ("empirical:/dev/zero", "more than 64000000 bytes"),
    ],
)
def test_bad_laws_are_rejected_with_one_sentence(text: object, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        parse_service(text)


def test_bad_durations_are_rejected() -> None:
    durations: object
    for durations in ([], [0.0], 3, [1, -1], ["a"], [math.inf]):
        with pytest.raises(InputError):
            empirical_law(durations)  # type: ignore[arg-type]


def test_endless_durations_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_NUMBERS", 100)
    with pytest.raises(InputError, match="durations must be 1 to 100 numbers, not more"):
        empirical_law(count(1))


@pytest.mark.parametrize(
    ("law", "words"), [("foo", "service must be one of .*, not 'foo'"), ("lognormal", "lognormal needs cv")]
)
def test_a_law_of_parts_that_do_not_fit_is_rejected(law: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ServiceLaw(law)


def test_the_normal_quantile_is_accurate_to_the_last_digits() -> None:
    chances = np.concatenate([np.linspace(0.001, 0.999, 999), 10.0 ** -np.arange(1, 300)])
    found = [normal_quantile(chance) for chance in chances]
    np.testing.assert_allclose(found, stats.norm.ppf(chances), rtol=2e-15, atol=1e-16)
