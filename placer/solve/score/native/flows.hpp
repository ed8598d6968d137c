// Flows of any sizes at once, port by port; and messages along rows in turn, priced anew.
#pragma once
#include <cmath>
#include "operation.hpp"

namespace placer {

// Bytes on the uplinks of every tier outside the scale-up domain, by direction.
struct Uplinks {
  std::vector<Reals> up, down;  // [tier][child]

  void clear(const Machine& m) {
    up.resize(m.tiers);
    down.resize(m.tiers);
    for (int t = m.first_outer(); t < m.tiers; ++t) {
      up[t].assign(m.capacity[t].size(), 0.0);
      down[t].assign(m.capacity[t].size(), 0.0);
    }
  }
  void add(const Machine& m, int from, int to, int tier, double bytes) {
    for (int t = m.first_outer(); t <= tier; ++t) {
      up[t][m.child(t, from)] += bytes;
      down[t][m.child(t, to)] += bytes;
    }
  }
  double seconds(const Machine& m, int from, int to, int tier) const {
    double most = 0.0;
    for (int t = m.first_outer(); t <= tier; ++t) {
      const int a = m.child(t, from), b = m.child(t, to);
      most = std::max({most, up[t][a] / m.capacity[t][a], down[t][b] / m.capacity[t][b]});
    }
    return most;
  }
};

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

  void rebuild() override {
    std::fill(busy.begin(), busy.end(), 0.0);
    for (Reals* some : {&outside, &inside, &waits}) std::fill(some->begin(), some->end(), 0.0);
    touched_entries.clear();
    entries_seen.wipe();
    for (size_t i = 0; i < flows.size(); ++i) add((int)i, 1.0);
    for (int entry : touched_entries) settle_entry(entry);
    refine();
    keep();
    changed.clear();
  }
  void touch(const Ints& atoms) override {
    if (is_of_kind) kept.keep(excess.sum);
    moved_flows.clear();
    flows_seen.wipe();
    touched_entries.clear();
    entries_seen.wipe();
    is_exact = false;
    for (int atom : atoms)
      for (const int* f = of_flow.begin(atom); f != of_flow.end(atom); ++f)
        if (flows_seen.mark(*f)) moved_flows.push_back(*f);
    for (int f : moved_flows) add(f, -1.0);
  }
  void after_move(const Ints&) override {
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
      if (by_port.size(entry)) flow = by_port.begin(entry)[random.below(by_port.size(entry))];
    } else if (entry >= first_alone) {
      flow = entry - first_alone;
    } else {
      const int half = machine.uplinks(), place = (entry - first_uplink) % half;
      const bool is_down = entry - first_uplink >= half;
      int t = machine.first_outer();
      while (machine.uplink(t + 1, 0) <= place) ++t;
      const int child = place - machine.uplink(t, 0), begin = layout.first[t][child], end = layout.end[t][child];
      for (int tries = 0; tries < TRIES && flow < 0 && end > begin; ++tries) {
        const int atom = layout.atom_at[begin + random.below(end - begin)];
        if (atom < 0 || !of_flow.size(atom)) continue;
        const int f = of_flow.begin(atom)[random.below(of_flow.size(atom))];
        const int a = machine.child(t, layout.site_of(flows[f].from));
        const int b = machine.child(t, layout.site_of(flows[f].to));
        if (a != b && (is_down ? b : a) == child) flow = f;
      }
    }
    if (flow < 0) return -1;
    return random.below(2) ? flows[flow].from : flows[flow].to;
  }

 private:
  static constexpr int TRIES = 12;
  int ranks = 0, first_uplink = 0, first_alone = 0, slowest = 0;
  bool is_exact = false;
  // Ports ([sends, receives][rank]), uplinks ([up, down][tier][child]), and flows by
  // themselves where a pair cannot fill a NIC.
  Reals busy;
  Reals outside, inside, waits;  // of each port: by its NIC, by NVLink, latencies
  Ints touched_entries, moved_flows;
  Rows of_flow, by_port;         // flows of each atom, of each port
  Marks flows_seen, entries_seen;

  void touch_entry(int entry) {
    if (entries_seen.mark(entry)) touched_entries.push_back(entry);
  }
  int uplink(bool down, int t, int child) const {
    return first_uplink + (down ? machine.uplinks() : 0) + machine.uplink(t, child);
  }
  void raise(double& place, double by) {
    kept.set(place, place + by);
  }
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
    for (int u = m.first_outer(); u <= t; ++u)
      for (bool down : {false, true}) {
        const int child = m.child(u, down ? b : a), entry = uplink(down, u, child);
        touch_entry(entry);
        const double by = sign * f.bytes / m.capacity[u][child];
        change_entry(entry, busy[entry] + by);
      }
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
    for (int u = m.first_outer(); u <= t; ++u)
      most = std::max({most, busy[uplink(false, u, m.child(u, a))], busy[uplink(true, u, m.child(u, b))]});
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
  Uplinks uplinks;
  Reals sums;

  // Rows of one length run side by side.
  void price() override {
    const Machine& m = machine;
    sums.assign(groups, 0.0);
    int longest = 0;
    for (int row = 0; row < member.count(); ++row) longest = std::max(longest, member.size(row));
    for (int length = 2; length <= longest; ++length)
      for (int hop = 0; hop + 1 < length; ++hop) {
        uplinks.clear(m);
        bool any = false;
        each(length, hop, [&](int, int a, int b, int t) { any = true, uplinks.add(m, a, b, t, size); });
        if (!any) break;
        each(length, hop, [&](int row, int a, int b, int t) {
          double own = size / m.bandwidth[t] / std::min(m.factor[a], m.factor[b]);
          own = std::max(own, uplinks.seconds(m, a, b, t)) + m.latency[t];
          if (m.has_rails && m.rail[a] != m.rail[b]) own += m.detour[t];
          sums[row] += own;
        });
      }
    for (int g = 0; g < groups; ++g) set(g, 0, sums[g], sums[g]);
  }
  template <class Use> void each(int length, int hop, const Use& use) {
    for (int row = 0; row < member.count(); ++row) {
      if (member.size(row) != length) continue;
      const int a = layout.site_of(member.begin(row)[hop]), b = layout.site_of(member.begin(row)[hop + 1]);
      use(row, a, b, machine.tier(a, b));
    }
  }
};

}  // namespace placer
