"""Seconds of rings, all-to-alls and messages, one hop after the other."""


def gathers(machine, groups, size):
    """Seconds of a reduce-scatter or all-gather in each group of GPUs, all at once.

    Domains follow each other in the order in which members first appear in them. An
    edge carries ``(n-1)/n size``; between domains it uses as many NICs as the domain
    with the fewest members has, and a fair part of every uplink.
    """
    if not groups or len(groups[0]) == 1:
        return [0.0] * len(groups)
    chains = [by_island(machine, group) for group in groups]
    orders = [[gpu for part in parts for gpu in part] for parts in chains]
    share = {len(order): (len(order) - 1) / len(order) * size for order in orders}
    outer = [
        [hop for hop in edges(order) if machine.tier(*hop) >= machine.nvlink_tiers]
        for order in orders
    ]
    slowest = [min(machine.factor[gpu] for gpu in order) for order in orders]
    alone = [
        max((1 / (machine.rate(machine.tier(*hop)) * slow) for hop in hops), default=0)
        for hops, slow in zip(outer, slowest, strict=True)
    ]
    fewest = [min(len(part) for part in parts) for parts in chains]
    paces = machine.fair_paces(outer, fewest, alone)
    found = []
    for parts, order, pace in zip(chains, orders, paces, strict=True):
        slow = min(machine.factor[gpu] for gpu in order)
        transfer = share[len(order)] * pace
        inside = []
        outside = []
        for one, other in edges(order):
            t = machine.tier(one, other)
            leaves = t >= machine.nvlink_tiers
            (outside if leaves else inside).append(
                ring_latency(machine, parts, one, other)
            )
            if not leaves:
                rate = machine.rate(t) * slow
                transfer = max(transfer, share[len(order)] / rate)
        steps_out = len(parts) - 1
        latency = steps_out * mean(outside)
        latency += (len(order) - 1 - steps_out) * mean(inside)
        found.append(transfer + latency)
    return found


def all_to_alls(machine, groups, size, copies=0):
    """Seconds of one exchange in each group of GPUs, all groups at once.

    Every member sends ``size/n`` to each other member, over NVLink and over its NIC
    side by side, and waits for the uplinks it uses. With ``copies`` of each token, one
    crosses to each island that has one of its experts, in a message an island, and
    goes on to each member there that has one.
    """
    shares = [_crossing(machine, group, copies) for group in groups]
    flows = [
        (one, other, size / len(group) * share)
        for group, share in zip(groups, shares, strict=True)
        for one in group
        for other in group
        if machine.tier(one, other) >= machine.nvlink_tiers and one != other
    ]
    busy = machine.busy(flows)
    times = []
    for group, share in zip(groups, shares, strict=True):
        islands = len(by_island(machine, group))
        slowest = 0.0
        for one in group:
            near = far = near_latency = far_latency = shared = 0.0
            here = sum(machine.island(gpu) == machine.island(one) for gpu in group)
            for other in group:
                if other == one:
                    continue
                t = machine.tier(one, other)
                seconds = size / len(group) / machine.rate(t) / machine.factor[one]
                if t < machine.nvlink_tiers:
                    passed = len(group) / here * _drawn(len(group), copies)
                    near += seconds * (passed / 0.82 if copies else 1)
                    near_latency += machine.latency(t)
                    continue
                far += seconds * share
                away = len(group) - here
                each = (islands - 1) / away if copies else 1.0
                far_latency += each * machine.hop_latency(one, other)
                for link in machine.links(one, other):
                    if link[2] != "down":
                        shared = max(shared, busy[link])
            own = max(near, far, shared)
            slowest = max(slowest, own + near_latency + far_latency)
        times.append(slowest)
    return times


def _crossing(machine, group, copies):
    """Share of a buffer's bytes for other islands that really crosses."""
    if not copies:
        return 1.0
    return _drawn(len(by_island(machine, group)), copies)


def _drawn(places, copies):
    """Share of a token's copies that is left when each place gets one."""
    return places * (1 - (1 - 1 / places) ** copies) / max(copies, 1)


def messages(machine, pairs, size):
    """Seconds of each message between two GPUs, all at once."""
    busy = machine.busy([(one, other, size) for one, other in pairs])
    times = []
    for one, other in pairs:
        t = machine.tier(one, other)
        slow = min(machine.factor[one], machine.factor[other])
        seconds = size / (machine.rate(t) * slow)
        for link in machine.links(one, other):
            seconds = max(seconds, busy[link])
        times.append(seconds + machine.hop_latency(one, other))
    return times


def flows(machine, sizes, share):
    """Seconds of flows of so many bytes between two GPUs, all at once.

    A GPU works through its messages one by one, in and out, over NVLink and over its
    NIC at the same time. One message reaches a share of the NIC alone.
    """
    busy = machine.busy([(*pair, size) for pair, size in sizes.items()])
    port = {}
    waits = {}
    for pair, size in sizes.items():
        t = machine.tier(*pair)
        for gpu, way in zip(pair, ("out", "in"), strict=True):
            key = gpu, way, t < machine.nvlink_tiers
            own = size / (machine.rate(t) * machine.factor[gpu])
            port[key] = port.get(key, 0.0) + own
            waits[gpu, way] = waits.get((gpu, way), 0.0) + machine.wire_latency(*pair)
    times = []
    for one, other in sizes:
        found = [busy[link] for link in machine.links(one, other)]
        t = machine.tier(one, other)
        if t >= machine.nvlink_tiers:
            slow = min(machine.factor[one], machine.factor[other])
            found.append(sizes[one, other] / (machine.rate(t) * slow * share))
        for gpu, way in ((one, "out"), (other, "in")):
            found += [port.get((gpu, way, inside), 0.0) for inside in (True, False)]
        times.append(max(found) + max(waits[one, "out"], waits[other, "in"]))
    return times


def ring_latency(machine, parts, one, other):
    """Seconds of a ring's hop; one island's rails may all be among the other's."""
    t = machine.tier(one, other)
    (here,) = [{machine.rail[g] for g in part} for part in parts if one in part]
    (there,) = [{machine.rail[g] for g in part} for part in parts if other in part]
    on_rail = here <= there or there <= here
    return machine.wire_latency(one, other) + (0.0 if on_rail else machine.detour(t))


def by_island(machine, group):
    """Members by NVLink domain, in the order in which they first appear."""
    parts = {}
    for gpu in group:
        parts.setdefault(machine.island(gpu), []).append(gpu)
    return list(parts.values())


def edges(order):
    """Hops of a ring."""
    return [(gpu, order[(i + 1) % len(order)]) for i, gpu in enumerate(order)]


def mean(values):
    """Mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
