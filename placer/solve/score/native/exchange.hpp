// All-to-alls: placer.cost.exchange.all_to_all_cost, group by group.
#pragma once
#include "operation.hpp"

namespace placer {

struct Exchange : Operation {
  Rows member, weight;        // atoms of each group, and how many of each are members
  Ints lanes;                 // groups alike that are kept once
  int members = 0;            // of a group
  Reals share;                // bytes to each other member, one a run
  Reals sent;                 // [domains] share that goes to other domains, if once each
  double sent_inside = 0.0;   // and of what arrives, to each member
  Reals load;                 // [tier, child], bytes for a share of one byte
  Ints offset;                // where tiers begin in load
  double least_outside = 0.0; // no group across tiers takes less for such a share

  void start() {
    prepare();
    const Machine& m = *machine;
    offset.assign(m.tiers + 1, 0);
    for (int t = 0; t < m.tiers; ++t) offset[t + 1] = offset[t] + (int)m.capacity[t].size();
    load.assign(offset[m.tiers], 0.0);
    around.resize(m.tiers + 1);
    seen.resize(m.tiers + 1);
    by_rail.resize(m.tiers + 1);
    for (int t = 0; t <= m.tiers; ++t) {
      const size_t count = t < m.tiers ? m.capacity[t].size() : 1;
      around[t].assign(count, 0);
      seen[t].resize(count);
      if (m.has_rails) by_rail[t].assign(count * m.rails, 0);
    }
    on_site.assign(m.rail.size(), 0);
    sites_seen.resize(m.rail.size());
    loads_seen.resize(load.size());
    double fastest = 0.0;
    for (int t = m.first_outer(); t < m.tiers; ++t) fastest = std::max(fastest, m.bandwidth[t]);
    // The smaller part of a group that is cut sends to half of it or more. Latencies
    // that do not grow with the tier, or slow GPUs, would make another member the last.
    const double crossing = sent.empty() ? 1.0 : sent[std::min(2, members)];
    bool grows = true;
    for (int t = 1; t < m.tiers; ++t) grows &= m.latency[t] >= m.latency[t - 1];
    for (double f : m.factor) grows &= f >= 1.0;
    const bool plain = sent.empty() && grows && !m.has_rails;
    least_outside = plain && fastest > 0 ? members / 2.0 * crossing / fastest : 0.0;
  }

  void rebuild() override {
    std::fill(load.begin(), load.end(), 0.0);
    for (int g = 0; g < groups; ++g) add_load(g, 1.0, false);
    for (int g = 0; g < groups; ++g) price(g);
    kept.kept.clear();
    changed.clear();
  }

  void before_move(const Ints& moved) override {
    loads_seen.wipe();
    loads.clear();
    for (int g : moved) add_load(g, -1.0, true);
  }
  void after_move(const Ints& moved) override {
    for (int g : moved) add_load(g, 1.0, true);
  }

  void settle() override {
    changed.clear();
    for (int g : touched) price(g);
    const Machine& m = *machine;
    for (const Load& was : loads) {
      const double now = load[offset[was.tier] + was.child];
      const double most = std::max(now, was.value) / m.capacity[was.tier][was.child];
      if (now == was.value || most <= least_outside) continue;
      const int last = layout->end[was.tier][was.child];
      for (int slot = layout->first[was.tier][was.child]; slot < last; ++slot) {
        const int atom = layout->atom_at[slot];
        if (atom < 0) continue;
        for (const int* g = of_atom.begin(atom); g != of_atom.end(atom); ++g)
          if (marks.mark(*g)) price(*g);
      }
    }
  }

 private:
  struct Load { int tier, child; double value; };
  std::vector<Load> loads;
  Marks loads_seen, sites_seen;
  std::vector<Ints> around, by_rail;  // [tier][child] members there, and on a rail
  std::vector<Marks> seen;
  Ints on_site, sites;

  // Members of a group by site, and by child of every tier.
  void count(int g) {
    const Machine& m = *machine;
    sites.clear();
    sites_seen.wipe();
    const int* w = weight.begin(g);
    for (const int* a = member.begin(g); a != member.end(g); ++a, ++w) {
      const int site = layout->site_of(*a);
      if (sites_seen.mark(site)) sites.push_back(site), on_site[site] = 0;
      on_site[site] += *w;
    }
    for (int t = 1; t < m.tiers; ++t) {
      seen[t].wipe();
      for (int site : sites) {
        const int c = m.child[t][site];
        if (seen[t].mark(c)) {
          around[t][c] = 0;
          if (m.has_rails) std::fill_n(by_rail[t].begin() + (size_t)c * m.rails, m.rails, 0);
        }
        around[t][c] += on_site[site];
        if (m.has_rails) by_rail[t][(size_t)c * m.rails + m.rail[site]] += on_site[site];
      }
    }
  }
  int within(int t, int site) const {
    if (t == 0) return 1;
    return t < machine->tiers ? around[t][machine->child[t][site]] : members;
  }
  int on_rail(int t, int site) const {
    const Machine& m = *machine;
    if (t == 0) return 1;
    if (t < m.tiers) return by_rail[t][(size_t)m.child[t][site] * m.rails + m.rail[site]];
    int total = 0;
    for (int other : sites)
      if (m.rail[other] == m.rail[site]) total += on_site[other];
    return total;
  }
  int domains() const {
    const int t = machine->first_outer();
    if (t == 0) return members;
    if (t == machine->tiers) return 1;
    int found = 0;
    Marks& fresh = const_cast<Marks&>(seen[t]);
    fresh.wipe();
    for (int site : sites) found += fresh.mark(machine->child[t][site]);
    return found;
  }

  void add_load(int g, double sign, bool keep) {
    const Machine& m = *machine;
    count(g);
    const double each = sign * lanes[g] * (sent.empty() ? 1.0 : sent[domains()]);
    for (int site : sites)
      for (int t = m.first_outer(); t < m.tiers; ++t) {
        const int outside = members - within(t, site);
        if (!outside) break;
        const int place = offset[t] + m.child[t][site];
        if (keep && loads_seen.mark(place)) {
          loads.push_back({t, m.child[t][site], load[place]});
          kept.keep(load[place]);
        }
        load[place] += each * on_site[site] * outside;
      }
  }

  void price(int g) {
    const Machine& m = *machine;
    count(g);
    const bool once = !sent.empty();
    const int number = once ? domains() : 0, outer = m.first_outer();
    const double crossing = once ? sent[number] : 1.0;
    for (int run = 0; run < sizes; ++run) {
      double worst = 0.0, total = 0.0;
      for (int site : sites) {
        const int here = within(outer, site);
        const double nearby = once ? (double)members / here * sent_inside : 1.0;
        const double messages = once ? (double)(number - 1) / std::max(members - here, 1) : 1.0;
        double inner = 0.0, outside = 0.0, latency = 0.0, detours = 0.0, shared = 0.0;
        for (int t = 0; t < m.tiers; ++t) {
          const int before = within(t, site), peers = within(t + 1, site) - before;
          if (t < outer) {
            inner += share[run] * peers * nearby / m.bandwidth[t];
            latency += m.latency[t] * peers;
          } else {
            outside += share[run] * peers * crossing / m.bandwidth[t];
            latency += m.latency[t] * peers * messages;
            if (before < members)
              shared = std::max(shared, load[offset[t] + m.child[t][site]] * share[run] /
                                            m.capacity[t][m.child[t][site]]);
          }
          if (m.detour[t] > 0 && peers)
            detours += m.detour[t] * (peers - (on_rail(t + 1, site) - on_rail(t, site)));
        }
        const double own = std::max(inner, outside) / m.factor[site];
        const double seconds = std::max(own, shared) + latency + detours * messages;
        total += on_site[site] * seconds;
        worst = std::max(worst, seconds);
      }
      tell(g, run, worst, total / members);
    }
  }
};

}  // namespace placer
