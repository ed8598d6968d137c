// Messages that all run at once: placer.cost.exchange.send_cost, pair by pair.
#pragma once
#include "operation.hpp"

namespace placer {

struct Messages : Operation {
  Ints sender, receiver, lanes;  // atoms of each pair, and how many messages it stands for
  double size = 0.0;
  Ints thin;                     // tiers whose uplinks may hold a message up
  Reals up, down;                // [tier, child] messages
  Ints offset;

  void start() {
    prepare();
    const Machine& m = *machine;
    offset.assign(m.tiers + 1, 0);
    for (int t = 0; t < m.tiers; ++t) offset[t + 1] = offset[t] + (int)m.capacity[t].size();
    up.assign(offset[m.tiers], 0.0);
    down.assign(offset[m.tiers], 0.0);
    loads_seen.resize(2 * up.size());
  }

  void rebuild() override {
    std::fill(up.begin(), up.end(), 0.0);
    std::fill(down.begin(), down.end(), 0.0);
    for (int p = 0; p < groups; ++p) add_load(p, 1.0, false);
    for (int p = 0; p < groups; ++p) price(p);
    kept.kept.clear();
    changed.clear();
  }
  void before_move(const Ints& moved) override {
    loads_seen.wipe();
    loads.clear();
    for (int p : moved) add_load(p, -1.0, true);
  }
  void after_move(const Ints& moved) override {
    for (int p : moved) add_load(p, 1.0, true);
  }

  void settle() override {
    changed.clear();
    for (int p : touched) price(p);
    const Machine& m = *machine;
    for (const Load& was : loads) {
      const double now = (was.is_up ? up : down)[offset[was.tier] + was.child];
      // Below what one GPU sends by itself no uplink holds anybody up.
      const double alone = m.capacity[was.tier][was.child] / fastest(was.tier);
      if (now == was.value || std::max(now, was.value) <= alone) continue;
      const int last = layout->end[was.tier][was.child];
      for (int slot = layout->first[was.tier][was.child]; slot < last; ++slot) {
        const int atom = layout->atom_at[slot];
        if (atom < 0) continue;
        for (const int* p = of_atom.begin(atom); p != of_atom.end(atom); ++p)
          if (marks.mark(*p)) price(*p);
      }
    }
  }

 private:
  struct Load { int tier, child; bool is_up; double value; };
  std::vector<Load> loads;
  Marks loads_seen;

  double fastest(int tier) const {
    double most = 0.0;
    for (int t = tier; t < machine->tiers; ++t) most = std::max(most, machine->bandwidth[t]);
    return most;
  }
  void note(Reals& load, bool is_up, int t, int child, double messages, bool keep) {
    const int place = offset[t] + child;
    if (keep && loads_seen.mark(2 * place + is_up)) {
      loads.push_back({t, child, is_up, load[place]});
      kept.keep(load[place]);
    }
    load[place] += messages;
  }
  void add_load(int p, double sign, bool keep) {
    if (thin.empty()) return;
    const Machine& m = *machine;
    const int from = layout->site_of(sender[p]), to = layout->site_of(receiver[p]);
    const int common = m.tier(from, to);
    for (int t : thin) {
      if (t > common) break;
      note(up, true, t, m.child[t][from], sign * lanes[p], keep);
      note(down, false, t, m.child[t][to], sign * lanes[p], keep);
    }
  }
  void price(int p) {
    const Machine& m = *machine;
    const int from = layout->site_of(sender[p]), to = layout->site_of(receiver[p]);
    const int common = m.tier(from, to);
    double seconds = size / m.bandwidth[common] / std::min(m.factor[from], m.factor[to]);
    for (int t : thin) {
      if (t > common) break;
      const int a = m.child[t][from], b = m.child[t][to];
      seconds = std::max(seconds, up[offset[t] + a] * size / m.capacity[t][a]);
      seconds = std::max(seconds, down[offset[t] + b] * size / m.capacity[t][b]);
    }
    seconds += m.latency[common];
    if (m.has_rails && m.rail[from] != m.rail[to]) seconds += m.detour[common];
    tell(p, 0, seconds, seconds);
  }
};

}  // namespace placer
