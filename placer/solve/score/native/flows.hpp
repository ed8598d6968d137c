// Flows of any sizes at once, and messages along rows in turn: priced anew after a change.
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
      up[t][m.child[t][from]] += bytes;
      down[t][m.child[t][to]] += bytes;
    }
  }
  double seconds(const Machine& m, int from, int to, int tier) const {
    double most = 0.0;
    for (int t = m.first_outer(); t <= tier; ++t) {
      const int a = m.child[t][from], b = m.child[t][to];
      most = std::max({most, up[t][a] / m.capacity[t][a], down[t][b] / m.capacity[t][b]});
    }
    return most;
  }
};

// placer.cost.exchange.flows_cost: the slowest flow of a step.
struct Flows : PricedAnew {
  struct Flow { int from, to, sender, receiver; double bytes; };  // atoms, ranks
  std::vector<Flow> flows;
  double pair_share = 1.0, fixed = 0.0;

  void start() {
    prepare();
    ranks = 0;
    for (const Flow& flow : flows) ranks = std::max({ranks, flow.sender + 1, flow.receiver + 1});
    tier.resize(flows.size());
  }

 private:
  static constexpr double POWER = 8.0;  // of the mean of ports that walks go down on
  int ranks = 0;
  Ints tier;
  Uplinks uplinks;
  Reals busy, waits;  // [sends, receives][inside, outside][rank], [sends, receives][rank]

  double& busy_of(int end, bool outside, int rank) { return busy[(size_t)(2 * end + outside) * ranks + rank]; }

  void price() override {
    const Machine& m = *machine;
    busy.assign((size_t)4 * ranks, 0.0);
    waits.assign((size_t)2 * ranks, 0.0);
    uplinks.clear(m);
    for (size_t i = 0; i < flows.size(); ++i) {
      const Flow& f = flows[i];
      const int a = layout->site_of(f.from), b = layout->site_of(f.to), t = m.tier(a, b);
      tier[i] = t;
      const double pace = f.bytes / m.bandwidth[t];
      busy_of(0, t > m.scale_up, f.sender) += pace / m.factor[a];
      busy_of(1, t > m.scale_up, f.receiver) += pace / m.factor[b];
      waits[f.sender] += m.latency[t];
      waits[ranks + f.receiver] += m.latency[t];
      uplinks.add(m, a, b, t, f.bytes);
    }
    double most = 0.0;
    for (size_t i = 0; i < flows.size(); ++i) {
      const Flow& f = flows[i];
      const int a = layout->site_of(f.from), b = layout->site_of(f.to), t = tier[i];
      double seconds = uplinks.seconds(m, a, b, t);
      if (t > m.scale_up)
        seconds = std::max(seconds, f.bytes / m.bandwidth[t] / std::min(m.factor[a], m.factor[b]) / pair_share);
      for (bool outside : {false, true})
        seconds = std::max({seconds, busy_of(0, outside, f.sender), busy_of(1, outside, f.receiver)});
      most = std::max(most, seconds + std::max(waits[f.sender], waits[ranks + f.receiver]));
    }
    double sum = 0.0, ports = 0.0;
    const auto add = [&](double seconds) {
      sum += most > 0 ? std::pow(seconds / most, POWER) : 0.0;
      ++ports;
    };
    for (double seconds : busy) add(seconds);
    for (int t = m.first_outer(); t < m.tiers; ++t)
      for (size_t c = 0; c < uplinks.up[t].size(); ++c) {
        add(uplinks.up[t][c] / m.capacity[t][c]);
        add(uplinks.down[t][c] / m.capacity[t][c]);
      }
    tell(0, 0, most + fixed, most * std::pow(sum / ports, 1.0 / POWER));
  }
};

// placer.cost.custom.group_time of a relay: the hops of a row one after the other.
struct Relay : PricedAnew {
  Rows member;   // atoms, in turn
  double size = 0.0;

  void start() { prepare(); }

 private:
  Uplinks uplinks;
  Reals sums;

  // Rows of one length run side by side.
  void price() override {
    const Machine& m = *machine;
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
    for (int g = 0; g < groups; ++g) tell(g, 0, sums[g], sums[g]);
  }
  template <class Use> void each(int length, int hop, const Use& use) {
    for (int row = 0; row < member.count(); ++row) {
      if (member.size(row) != length) continue;
      const int a = layout->site_of(member.begin(row)[hop]), b = layout->site_of(member.begin(row)[hop + 1]);
      use(row, a, b, machine->tier(a, b));
    }
  }
};

}  // namespace placer
