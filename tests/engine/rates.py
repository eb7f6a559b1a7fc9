"""Max-min fair rates of a system, by the routine that the number of its routes asks for."""

import math

import numpy as np

from simperf.engine.maxmin import MANY, fill, fill_many


def route_table(routes):
    """Routes of unlike length as the columns that `fill_many` takes: link i becomes i + 1, and 0 is no link."""
    table = np.zeros((max(map(len, routes), default=0), len(routes)), dtype=np.intp)
    for column, route in enumerate(routes):
        for row, link in enumerate(route):
            table[row, column] = link + 1
    return table


def max_min_rates(routes, capacities, *, caps=None, weights=None):
    """Rate of each flow; `caps` bound flows, and a bottleneck is shared in proportion to `weights`."""
    claims = [1.0] * len(routes) if weights is None else [float(weight) for weight in weights]
    limits = [math.inf] * len(routes) if caps is None else [c / w for c, w in zip(caps, claims, strict=True)]
    if len(routes) < MANY:
        levels = fill(routes, capacities, claims, limits)
    else:
        table, room = route_table(routes), np.array([math.inf, *capacities])
        levels = fill_many(table, room, np.array(claims), np.array(limits)).tolist()
    return [level * weight for level, weight in zip(levels, claims, strict=True)]
