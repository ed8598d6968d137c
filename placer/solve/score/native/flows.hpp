// Flows of any sizes at once, port by port; and messages along rows in turn, priced anew.
#pragma once
#include <cmath>
#include "operation.hpp"

namespace placer {

// placer.cost.exchange.flows_cost: the slowest flow of a step.
//
// A change touches the ports of the flows of whoever moves, and the uplinks on their way.
// What a flow takes depends on much more, so the slowest is looked for where it is wanted:
// until then its time is that of a flow that was slowest once, no more than the slowest now.
struct Flows : Operation {
  struct Flow { int from, to, sender, receiver; double bytes; };  // atoms, ranks
  std::vector<Flow> flows;
  double pair_share, fixed;

  Flows(const Cost& cost, const Given& of)
      : Operation(cost, Rows{}, 1, 1), pair_share(of.real("pair_share")), fixed(of.real("fixed")) {
    const Ints from = of.ints("from_atom"), to = of.ints("to_atom");
    const Ints sender = of.ints("sender"), receiver = of.ints("receiver");
    const Reals bytes = of.reals("size");
    for (size_t i = 0; i < from.size(); ++i) flows.push_back({from[i], to[i], sender[i], receiver[i], bytes[i]});
    for (const Flow& flow : flows) ranks = std::max({ranks, flow.sender + 1, flow.receiver + 1});
    first_uplink = 2 * ranks;
    first_alone = first_uplink + 2 * machine.uplinks();
    busy.assign(first_alone + (pair_share < 1.0 ? flows.size() : 0), 0.0);
    outside.assign(first_uplink, 0.0);
    inside = waits = outside;
    flows_seen.resize(flows.size());
    entries_seen.resize(busy.size());
    Rows atoms, ports;
    for (const Flow& f : flows) {
      atoms.entry.insert(atoms.entry.end(), {f.from, f.to});
      ports.entry.insert(ports.entry.end(), {f.sender, ranks + f.receiver});
      atoms.start.push_back((int)atoms.entry.size());
    }
    ports.start = atoms.start;
    of_flow = atoms.turned((int)layout.site.size());
    by_port = ports.turned(first_uplink);
  }
  bool is_rough() const override { return !is_exact; }
  const Reals& entries() const override { return busy; }

  void touch(const Ints& atoms) override {
    if (is_of_kind) kept.keep(excess.sum);
    moved_flows.clear();
    flows_seen.wipe();
    touched_entries.clear();
    entries_seen.wipe();
    is_exact = false;
    for (int atom : atoms)
      for (int f : of_flow[atom])
        if (flows_seen.mark(f)) moved_flows.push_back(f);
    for (int f : moved_flows) add(f, -1.0);
  }
  void moved() override {
    for (int f : moved_flows) add(f, 1.0);
  }
  void settle() override {
    changed.clear();
    for (int entry : touched_entries) settle_entry(entry);
    set_slowest(seconds_of(slowest));
  }
  void undo() override {
    Operation::undo();
    is_exact = false;
  }
  // Look for the slowest flow.
  void refine() override {
    double most = -1.0;
    for (size_t i = 0; i < flows.size(); ++i) {
      const double own = seconds_of((int)i);
      if (own > most) most = own, slowest = (int)i;
    }
    set_slowest(std::max(most, 0.0));
    is_exact = true;
  }
  int part_of(int entry, Random& random) override {
    int flow = -1;
    if (entry < first_uplink) {
      if (by_port[entry].size()) flow = by_port[entry].any(random);
    } else if (entry >= first_alone) {
      flow = entry - first_alone;
    } else {
      const int below = (entry - first_uplink) % machine.uplinks();
      const int begin = layout.first[below], count = layout.end[below] - begin, shift = random.below(count);
      for (int i = 0; i < count && flow < 0; ++i) {
        const int atom = layout.atom_at[begin + (i + shift) % count];
        if (atom < 0 || !of_flow[atom].size()) continue;
        const int f = of_flow[atom].any(random);
        on_way(flows[f], [&](int other) { if (other == entry) flow = f; });
      }
    }
    if (flow < 0) return -1;
    return random.below(2) ? flows[flow].from : flows[flow].to;
  }

 private:
  int ranks = 0, first_uplink = 0, first_alone = 0, slowest = 0;
  bool is_exact = false;
  // Ports ([sends, receives][rank]), uplinks, and flows by themselves where a pair cannot
  // fill a NIC.
  Reals busy;
  Reals outside, inside, waits;  // of each port: by its NIC, by NVLink, latencies
  Ints touched_entries, moved_flows;
  Rows of_flow, by_port;         // flows of each atom, of each port
  Marks flows_seen, entries_seen;

  void price_all() override {
    for (Reals* some : {&busy, &outside, &inside, &waits}) std::fill(some->begin(), some->end(), 0.0);
    touched_entries.clear();
    entries_seen.wipe();
    for (size_t i = 0; i < flows.size(); ++i) add((int)i, 1.0);
    for (int entry : touched_entries) settle_entry(entry);
    refine();
  }
  void touch_entry(int entry) {
    if (entries_seen.mark(entry)) touched_entries.push_back(entry);
  }
  // Entries of the uplinks that a flow takes.
  template <class Use> void on_way(const Flow& f, const Use& use) const {
    const int a = layout.site_of(f.from), b = layout.site_of(f.to);
    machine.on_way(machine.outer, a, b, machine.tier(a, b), [&](int u) { use(first_uplink + u); });
  }
  void raise(double& place, double by) { kept.set(place, place + by); }
  // A flow as it lies now, with a sign.
  void add(int number, double sign) {
    const Machine& m = machine;
    const Flow& f = flows[number];
    const int a = layout.site_of(f.from), b = layout.site_of(f.to), t = m.tier(a, b);
    const double pace = sign * f.bytes / m.bandwidth[t];
    const int ends[] = {f.sender, ranks + f.receiver}, sites[] = {a, b};
    for (int end = 0; end < 2; ++end) {
      raise((t > m.scale_up ? outside : inside)[ends[end]], pace / m.factor[sites[end]]);
      raise(waits[ends[end]], sign * m.latency[t]);
      touch_entry(ends[end]);
    }
    on_way(f, [&](int entry) {
      touch_entry(entry);
      change_entry(entry, busy[entry] + sign * f.bytes / m.capacity[entry - first_uplink]);
    });
    if (first_alone < (int)busy.size()) touch_entry(first_alone + number);
  }
  void change_entry(int entry, double now) {
    if (is_of_kind) excess.sum += excess.of(now) - excess.of(busy[entry]);
    kept.set(busy[entry], now);
  }
  // Entries of ports and flows, from what they are made of.
  void settle_entry(int entry) {
    if (entry < first_uplink) change_entry(entry, std::max(outside[entry], inside[entry]) + waits[entry]);
    else if (entry >= first_alone) change_entry(entry, alone(flows[entry - first_alone]));
  }
  double alone(const Flow& f) const {
    const Machine& m = machine;
    const int a = layout.site_of(f.from), b = layout.site_of(f.to), t = m.tier(a, b);
    if (t <= m.scale_up) return m.latency[t];
    return f.bytes / m.bandwidth[t] / std::min(m.factor[a], m.factor[b]) / pair_share + m.latency[t];
  }
  double seconds_of(int number) const {
    const Machine& m = machine;
    const Flow& f = flows[number];
    const int a = layout.site_of(f.from), b = layout.site_of(f.to), t = m.tier(a, b);
    const int sends = f.sender, receives = ranks + f.receiver;
    double most = std::max({outside[sends], inside[sends], outside[receives], inside[receives]});
    on_way(f, [&](int entry) { most = std::max(most, busy[entry]); });
    if (t > m.scale_up)
      most = std::max(most, f.bytes / m.bandwidth[t] / std::min(m.factor[a], m.factor[b]) / pair_share);
    return most + std::max(waits[sends], waits[receives]);
  }
  void set_slowest(double most) {
    if (seconds[0] != most + fixed) {
      kept.set(seconds[0], most + fixed);
      changed.assign(1, 0);
    }
    if (mean[0] != most) kept.set(mean[0], most);
  }
};

// placer.cost.custom.group_time of a relay: the hops of a row one after the other.
struct Relay : PricedAnew {
  double size;

  Relay(const Cost& cost, const Given& of) : PricedAnew(cost, of.rows("member")), size(of.real("size")) {}

 private:
  Reals sums, bytes;              // bytes on each uplink

  // Rows of one length run side by side.
  void price_all() override {
    const Machine& m = machine;
    sums.assign(groups, 0.0);
    int longest = 0;
    for (int row = 0; row < member.count(); ++row) longest = std::max(longest, member[row].size());
    for (int length = 2; length <= longest; ++length)
      for (int hop = 0; hop + 1 < length; ++hop) {
        bytes.assign(m.capacity.size(), 0.0);
        bool any = false;
        each(length, hop, [&](int, int a, int b, int t) {
          any = true;
          m.on_way(m.outer, a, b, t, [&](int u) { bytes[u] += size; });
        });
        if (!any) break;
        each(length, hop, [&](int row, int a, int b, int t) {
          double own = size / m.bandwidth[t] / std::min(m.factor[a], m.factor[b]);
          m.on_way(m.outer, a, b, t, [&](int u) { own = std::max(own, bytes[u] / m.capacity[u]); });
          own += m.latency[t];
          if (m.has_rails && m.rail[a] != m.rail[b]) own += m.detour[t];
          sums[row] += own;
        });
      }
    for (int g = 0; g < groups; ++g) set(g, 0, sums[g], sums[g]);
  }
  template <class Use> void each(int length, int hop, const Use& use) {
    for (int row = 0; row < member.count(); ++row) {
      if (member[row].size() != length) continue;
      const int a = layout.site_of(member[row][hop]), b = layout.site_of(member[row][hop + 1]);
      use(row, a, b, machine.tier(a, b));
    }
  }
};

}  // namespace placer
