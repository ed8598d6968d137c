"""The machine's tree as a networkx graph, against a machine worked by hand."""

from dataclasses import replace

import networkx as nx

from placer.testing.strategies import machine


def test_domains_and_uplinks():
    """Every domain hangs below its own, with its tier's figures and its uplink."""
    plain = machine([("b0", [2, 4]), ("b1", [8])])
    node, rack, block, cluster = plain.tiers
    topology = replace(
        plain,
        tiers=(node, replace(rack, bandwidth=5e9, oversubscription=4), block, cluster),
    )
    tree = topology.to_networkx()
    assert nx.is_arborescence(tree)
    figures = {"bandwidth": 5e9, "latency": 1e-6, "scale_up": False}
    assert tree.nodes["rack", "r0"] == {"tier": "rack", "size": 6} | figures
    assert list(tree["rack", "r0"]) == [("node", "n000"), ("node", "n001")]
    # Four GPUs of 5 GB/s each, a quarter of it.
    assert tree["rack", "r0"]["node", "n001"] == {"bandwidth": 5e9}
    root = ("cluster", "all")
    assert tree.nodes[root]["size"] == 14
    tiers = {"block": ("b0", "b1"), "rack": ("r0", "r1")}
    tiers["node"] = ("n000", "n001", "n002")
    below = {(tier, name) for tier, names in tiers.items() for name in names}
    assert nx.descendants(tree, root) == below


def test_gpus():
    """GPUs are the tree's leaves where they are asked for."""
    tree = machine([("b0", [2, 1])]).to_networkx(gpus=True)
    leaves = [vertex for vertex, below in tree.out_degree() if not below]
    assert leaves == [("gpu", "n000", 0), ("gpu", "n000", 1), ("gpu", "n001", 0)]
    assert tree.nodes["gpu", "n001", 0] == {"tier": "gpu", "size": 1}
    assert tree["node", "n000"]["gpu", "n000", 1] == {"bandwidth": 1e9}
