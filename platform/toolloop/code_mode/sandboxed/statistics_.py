"""``statistics`` for programs; exact where the standard library is exact."""

# The interpreter that runs this file is not CPython.
# ruff: noqa: B905, C419

import math
from collections import Counter
from decimal import Decimal
from typing import Any

StatisticsError = ValueError


def _data(data: Any, name: str, least: int = 1) -> Any:
    data = list(data)
    if len(data) < least:
        what = "one data point" if least == 1 else "two data points"
        raise StatisticsError(f"{name} requires at least {what}")
    return data


def _ratio(x: Any) -> Any:
    if isinstance(x, int):
        return int(x), 1
    mantissa, exponent = math.frexp(x)
    top, shift = int(math.ldexp(mantissa, 53)), exponent - 53
    return (top * 2**shift, 1) if shift >= 0 else (top, 2**-shift)


def _exact_sum(data: Any, square: bool = False) -> Any:
    by_bottom: dict[int, int] = {}
    for x in data:
        top, bottom = _ratio(x)
        if square:
            top, bottom = top * top, bottom * bottom
        by_bottom[bottom] = by_bottom.get(bottom, 0) + top
    most = max(by_bottom)
    return sum([top * (most // bottom) for bottom, top in by_bottom.items()]), most


def _plain(data: Any) -> bool:
    return all([isinstance(x, int) or (isinstance(x, float) and math.isfinite(x)) for x in data])


def _number(top: int, bottom: int, data: Any) -> Any:
    whole = all([isinstance(x, int) for x in data])
    return top // bottom if whole and top % bottom == 0 else top / bottom


def mean(data: Any) -> Any:
    data = list(data)
    if not data:
        raise StatisticsError("mean requires at least one data point")
    if not _plain(data):
        return sum(data[1:], data[0]) / len(data)
    top, bottom = _exact_sum(data)
    return _number(top, bottom * len(data), data)


def fmean(data: Any, weights: Any = None) -> float:
    data = list(data)
    if not data:
        raise StatisticsError("fmean requires at least one data point")
    if weights is None:
        return math.fsum([float(x) for x in data]) / len(data)
    weights = list(weights)
    return math.fsum([x * w for x, w in zip(data, weights)]) / math.fsum(weights)


def geometric_mean(data: Any) -> float:
    return math.exp(fmean([math.log(x) for x in data]))


def harmonic_mean(data: Any) -> Any:
    data = _data(data, "harmonic_mean")
    if 0 in data:
        return 0
    return len(data) / math.fsum([1 / x for x in data])


def median(data: Any) -> Any:
    data = sorted(data)
    if not data:
        raise StatisticsError("no median for empty data")
    half = len(data) // 2
    return data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2


def median_low(data: Any) -> Any:
    data = sorted(data)
    if not data:
        raise StatisticsError("no median for empty data")
    return data[(len(data) - 1) // 2]


def median_high(data: Any) -> Any:
    data = sorted(data)
    if not data:
        raise StatisticsError("no median for empty data")
    return data[len(data) // 2]


def mode(data: Any) -> Any:
    pairs = Counter(data).most_common(1)
    if not pairs:
        raise StatisticsError("no mode for empty data")
    return pairs[0][0]


def multimode(data: Any) -> Any:
    counts = Counter(data)
    most = max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]


def _spread(data: Any, center: Any, less: int) -> Any:
    """Return the variance as a fraction, exactly."""
    n = len(data)
    if center is not None:
        data = [x - center for x in data]
        top, bottom = _exact_sum(data, True)
        return top, bottom * (n - less)
    top, bottom = _exact_sum(data, True)
    first, under = _exact_sum(data)
    return n * top * under * under - first * first * bottom, bottom * under * under * n * (n - less)


def _variance(data: Any, center: Any, less: int) -> Any:
    if not _plain(data):
        middle = mean(data) if center is None else center
        squares = [(x - middle) ** 2 for x in data]
        return sum(squares[1:], squares[0]) / (len(data) - less)
    top, bottom = _spread(data, center, less)
    return _number(top, bottom, data)


def variance(data: Any, xbar: Any = None) -> Any:
    return _variance(_data(data, "variance", 2), xbar, 1)


def pvariance(data: Any, mu: Any = None) -> Any:
    return _variance(_data(data, "pvariance"), mu, 0)


def _root(top: int, bottom: int) -> float:
    """Return the correctly rounded square root of a fraction."""
    if top == 0:
        return 0.0
    shift = (len(bin(top)) - len(bin(bottom)) - 109) // 2
    if shift >= 0:
        over, under = top, bottom << 2 * shift
        scale = 1 << shift
        return float(_odd_root(over, under) * scale)
    over, under = top << -2 * shift, bottom
    return _odd_root(over, under) / (1 << -shift)


def _odd_root(top: int, bottom: int) -> int:
    root = math.isqrt(top // bottom)
    return root | (root * root * bottom != top)


def _deviation(data: Any, center: Any, less: int) -> Any:
    if not _plain(data):
        spread = _variance(data, center, less)
        return spread.sqrt() if isinstance(spread, Decimal) else math.sqrt(spread)
    top, bottom = _spread(data, center, less)
    return _root(top, bottom)


def stdev(data: Any, xbar: Any = None) -> Any:
    return _deviation(_data(data, "stdev", 2), xbar, 1)


def pstdev(data: Any, mu: Any = None) -> Any:
    return _deviation(_data(data, "pstdev"), mu, 0)


def quantiles(data: Any, n: int = 4, method: str = "exclusive") -> Any:
    if n < 1:
        raise StatisticsError("n must be at least 1")
    data = sorted(data)
    if len(data) < 2:
        raise StatisticsError("must have at least two data points")
    cuts = []
    if method == "inclusive":
        span = len(data) - 1
        for i in range(1, n):
            j, delta = divmod(i * span, n)
            cuts.append((data[j] * (n - delta) + data[j + 1] * delta) / n)
        return cuts
    if method != "exclusive":
        raise ValueError(f"Unknown method: {method!r}")
    span = len(data) + 1
    for i in range(1, n):
        j = min(max(i * span // n, 1), len(data) - 1)
        delta = i * span - j * n
        cuts.append((data[j - 1] * (n - delta) + data[j] * delta) / n)
    return cuts


def covariance(x: Any, y: Any) -> float:
    x, y = list(x), list(y)
    if len(x) != len(y) or len(x) < 2:
        raise StatisticsError("covariance requires two inputs of the same length, at least 2")
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    return math.fsum([(a - mx) * (b - my) for a, b in zip(x, y)]) / (len(x) - 1)


def correlation(x: Any, y: Any) -> float:
    x, y = list(x), list(y)
    if len(x) != len(y) or len(x) < 2:
        raise StatisticsError("correlation requires two inputs of the same length, at least 2")
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    xx = math.fsum([(a - mx) ** 2 for a in x])
    yy = math.fsum([(b - my) ** 2 for b in y])
    if xx == 0 or yy == 0:
        raise StatisticsError("at least one of the inputs is constant")
    return math.fsum([(a - mx) * (b - my) for a, b in zip(x, y)]) / math.sqrt(xx * yy)
