// All-to-alls and messages: placer.cost.exchange, all_to_all_cost and send_cost.
#pragma once
#include "operation.hpp"

namespace placer {

struct Exchange : OnUplinks {
  Ints weight;                // how many members each atom of a group has
  int members;                // of a group
  Reals share;                // bytes to each other member, one a run
  Reals sent;                 // [domains] share that goes to other domains, if once each
  double sent_inside;         // and of what arrives, to each member

  Exchange(const Cost& cost, const Given& of)
      : OnUplinks(cost, of, (int)of.reals("share").size(), 1), weight(of.ints("weight")),
        members(of.number("members")), share(of.reals("share")), sent(of.reals("sent")),
        sent_inside(of.real("sent_inside")), members_at(groups), were_at(groups) {
    const Machine& m = machine;
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
    double fastest = 0.0;
    for (int t = m.first_outer(); t < m.tiers; ++t) fastest = std::max(fastest, m.bandwidth[t]);
    // The smaller part of a group that is cut sends to half of it or more. Latencies
    // that do not grow with the tier, or slow GPUs, would make another member the last.
    bool grows = true;
    for (int t = 1; t < m.tiers; ++t) grows &= m.latency[t] >= m.latency[t - 1];
    for (double f : m.factor) grows &= f >= 1.0;
    const bool plain = sent.empty() && grows && !m.has_rails;
    least_outside = plain && fastest > 0 ? members / 2.0 / fastest : 0.0;
  }

 private:
  // The members of a group on one site: what each takes for a share of one byte besides what
  // uplinks make it wait, and the first tier whose domain there has all of the group.
  struct Here { int site, count, whole; double port, latency; };
  std::vector<std::vector<Here>> members_at, were_at;  // of each group, now and before the change
  double least_outside;       // no group across tiers takes less for a share of one byte
  Marks sites_seen;
  std::vector<Ints> around, by_rail;  // [tier][child] members there, and on a rail
  mutable std::vector<Marks> seen;
  Ints on_site, sites;

  // Members of a group by site, and by child of every tier.
  void count(int g) {
    const Machine& m = machine;
    sites.clear();
    sites_seen.wipe();
    const int* w = weight.data() + member.start[g];
    for (const int* a = member.begin(g); a != member.end(g); ++a, ++w) {
      const int site = layout.site_of(*a);
      if (sites_seen.mark(site)) sites.push_back(site), on_site[site] = 0;
      on_site[site] += *w;
    }
    for (int t = 1; t < m.tiers; ++t) {
      seen[t].wipe();
      for (int site : sites) {
        const int c = m.child(t, site);
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
    return t < machine.tiers ? around[t][machine.child(t, site)] : members;
  }
  int on_rail(int t, int site) const {
    const Machine& m = machine;
    if (t == 0) return 1;
    if (t < m.tiers) return by_rail[t][(size_t)m.child(t, site) * m.rails + m.rail[site]];
    int total = 0;
    for (int other : sites)
      if (m.rail[other] == m.rail[site]) total += on_site[other];
    return total;
  }
  int domains() const {
    const int t = machine.first_outer();
    if (t == 0) return members;
    if (t == machine.tiers) return 1;
    int found = 0;
    seen[t].wipe();
    for (int site : sites) found += seen[t].mark(machine.child(t, site));
    return found;
  }

  void before_move(const Ints& moved) override {
    OnUplinks::before_move(moved);
    for (int g : moved) std::swap(were_at[g], members_at[g]);
  }
  void undo() override {
    for (int g : touched) std::swap(were_at[g], members_at[g]);
    touched.clear();
    OnUplinks::undo();
  }
  void add_load(int g, double sign) override {
    const Machine& m = machine;
    count(g);
    if (sign > 0) note(g);
    const double each = sign * lanes[g] * (sent.empty() ? 1.0 : sent[domains()]);
    for (int site : sites)
      for (int t = m.first_outer(); t < m.tiers; ++t) {
        const int outside = members - within(t, site);
        if (!outside) break;
        add(0, t, m.child(t, site), each * on_site[site] * outside);
      }
  }
  double harmless(int tier, int child) const override { return least_outside * machine.capacity[tier][child]; }

  // Where the members of a group that is counted are.
  void note(int g) {
    const Machine& m = machine;
    const bool once = !sent.empty();
    const int number = once ? domains() : 0, outer = m.first_outer();
    const double crossing = once ? sent[number] : 1.0;
    members_at[g].clear();
    for (int site : sites) {
      const int here = within(outer, site);
      const double nearby = once ? (double)members / here * sent_inside : 1.0;
      const double messages = once ? (double)(number - 1) / std::max(members - here, 1) : 1.0;
      double inner = 0.0, outside = 0.0, latency = 0.0, detours = 0.0;
      int whole = outer;
      for (int t = 0; t < m.tiers; ++t) {
        const int before = within(t, site), peers = within(t + 1, site) - before;
        if (t < outer) {
          inner += peers * nearby / m.bandwidth[t];
          latency += m.latency[t] * peers;
        } else {
          outside += peers * crossing / m.bandwidth[t];
          latency += m.latency[t] * peers * messages;
          if (before < members) whole = t + 1;
        }
        if (m.detour[t] > 0 && peers)
          detours += m.detour[t] * (peers - (on_rail(t + 1, site) - on_rail(t, site)));
      }
      const double port = std::max(inner, outside) / m.factor[site];
      members_at[g].push_back({site, on_site[site], whole, port, latency + detours * messages});
    }
  }
  void price(int g) override {
    const Machine& m = machine;
    for (int run = 0; run < sizes; ++run) {
      double worst = 0.0, total = 0.0;
      for (const Here& here : members_at[g]) {
        double busy = here.port;
        for (int t = m.first_outer(); t < here.whole; ++t) {
          const int child = m.child(t, here.site);
          busy = std::max(busy, load[m.uplink(t, child)] / m.capacity[t][child]);
        }
        const double seconds = share[run] * busy + here.latency;
        total += here.count * seconds;
        worst = std::max(worst, seconds);
      }
      set(g, run, worst, total / members);
    }
  }
};

struct Messages : OnUplinks {
  double size;

  // Groups are a sender and its receiver.
  Messages(const Cost& cost, const Given& of) : OnUplinks(cost, of, 1, 2), size(of.real("size")) {
    adds_up = !machine.thin.empty();
  }

 private:
  // Below what one GPU sends by itself no uplink holds anybody up.
  double harmless(int tier, int child) const override {
    double most = 0.0;
    for (int t = tier; t < machine.tiers; ++t) most = std::max(most, machine.bandwidth[t]);
    return machine.capacity[tier][child] / most;
  }
  void add_load(int p, double sign) override {
    const Machine& m = machine;
    const int from = sender(p), to = receiver(p), common = m.tier(from, to);
    for (int t : m.thin) {
      if (t > common) break;
      add(0, t, m.child(t, from), sign * lanes[p]);
      add(1, t, m.child(t, to), sign * lanes[p]);
    }
  }
  void price(int p) override {
    const Machine& m = machine;
    const int from = sender(p), to = receiver(p), common = m.tier(from, to);
    double seconds = size / m.bandwidth[common] / std::min(m.factor[from], m.factor[to]);
    for (int t : m.thin) {
      if (t > common) break;
      const int up = m.child(t, from), down = m.child(t, to);
      seconds = std::max(seconds, load[m.uplink(t, up)] * size / m.capacity[t][up]);
      seconds = std::max(seconds, load[m.uplinks() + m.uplink(t, down)] * size / m.capacity[t][down]);
    }
    seconds += m.latency[common];
    if (m.has_rails && m.rail[from] != m.rail[to]) seconds += m.detour[common];
    set(p, 0, seconds, seconds);
  }
  int sender(int p) const { return layout.site_of(member.begin(p)[0]); }
  int receiver(int p) const { return layout.site_of(member.begin(p)[1]); }
};

}  // namespace placer
