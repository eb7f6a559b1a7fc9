"""Routes of a cluster by class: the same links as route by route."""

import pickle

import numpy as np

from simperf.hardware import build_cluster
from simperf.hardware.route_classes import LinkNames, RouteClasses


def test_links_are_those_of_the_routes_and_named_on_demand():
    machine = build_cluster("dgx-a100", 4, fabric="fat-tree", link="infiniband-hdr", servers_per_leaf=2)
    nodes, asked = (*machine.gpus, *machine.cpus[:1]), []

    def links(a, b):
        asked.append((a, b))
        return machine.route(nodes[a], nodes[b]).resources

    classes = RouteClasses(machine, nodes, machine.resources, links)
    src, dst = (part.ravel() for part in np.mgrid[: len(nodes), : len(nodes)])
    src, dst = src[src != dst], dst[src != dst]
    numbers, _kinds = classes.find(src, dst)
    assert asked == classes.representatives
    assert len(asked) < len(src) / 2
    found, place = classes.distinct(numbers)
    names, capacity = LinkNames(classes, found), classes.capacity(found)
    assert len(set(names)) == len(names) == len(found)
    for column in range(len(src)):
        crossed = [int(link) - 1 for link in place[:, column] if link]
        route = machine.route(nodes[src[column]], nodes[dst[column]])
        assert tuple(names[link] for link in crossed) == route.resources
        assert capacity[crossed].tolist() == [machine.resources[name] for name in route.resources]
    assert names.last() == max(names)
    assert tuple(names.take(np.array([2, 0]))) == (names[2], names[0])
    assert names[1:3] == (names[1], names[2])
    assert pickle.loads(pickle.dumps(names)) == tuple(names)
