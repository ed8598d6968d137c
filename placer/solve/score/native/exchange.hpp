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
      : OnUplinks(cost, of, (int)of.reals("share").size()), weight(of.ints("weight")),
        members(of.number("members")), share(of.reals("share")), sent(of.reals("sent")),
        sent_inside(of.real("sent_inside")), members_at(groups), were_at(groups) {
    const Machine& m = machine;
    around.assign(m.uplinks(), 0);
    seen.resize(m.uplinks());
    if (m.has_rails) by_rail.assign((size_t)m.uplinks() * m.rails, 0);
    on_site.assign(m.rail.size(), 0);
    sites_seen.resize(m.rail.size());
    double fastest = 0.0;
    for (int t : m.outer) fastest = std::max(fastest, m.bandwidth[t]);
    // The smaller part of a group that is cut sends to half of it or more. Latencies
    // that do not grow with the tier, or slow GPUs, would make another member the last.
    bool grows = true;
    for (int t = 1; t < m.tiers; ++t) grows &= m.latency[t] >= m.latency[t - 1];
    for (double f : m.factor) grows &= f >= 1.0;
    const bool plain = sent.empty() && grows && !m.has_rails;
    const double least = plain && fastest > 0 ? members / 2.0 / fastest : 0.0;  // of a group across tiers, for a byte
    for (size_t u = 0; u < harmless.size(); ++u) harmless[u] = least * m.capacity[u];
  }

 private:
  // The members of a group on one site: what each takes for a share of one byte besides what
  // uplinks make it wait, and the first tier whose domain there has all of the group.
  struct Here { int site, count, whole; double port, latency; };
  std::vector<std::vector<Here>> members_at, were_at;  // of each group, now and before the change
  Marks sites_seen, seen;
  Ints around, by_rail;       // members below each uplink, and on a rail
  Ints on_site, sites;
  int domains = 0;            // scale-up domains that have any

  // Members of a group by site, and by child of every tier.
  void count(int g) {
    const Machine& m = machine;
    sites.clear();
    sites_seen.wipe();
    for (int i = member.start[g]; i < member.start[g + 1]; ++i) {
      const int site = layout.site_of(member.entry[i]);
      if (sites_seen.mark(site)) sites.push_back(site), on_site[site] = 0;
      on_site[site] += weight[i];
    }
    seen.wipe();
    domains = m.first_outer() == 0 ? members : m.first_outer() == m.tiers;
    for (int t = 1; t < m.tiers; ++t)
      for (int site : sites) {
        const int u = m.uplink(t, site);
        if (seen.mark(u)) {
          around[u] = 0;
          if (m.has_rails) std::fill_n(by_rail.begin() + (size_t)u * m.rails, m.rails, 0);
          domains += t == m.first_outer();
        }
        around[u] += on_site[site];
        if (m.has_rails) by_rail[(size_t)u * m.rails + m.rail[site]] += on_site[site];
      }
  }
  int within(int t, int site) const {
    if (t == 0) return 1;
    return t < machine.tiers ? around[machine.uplink(t, site)] : members;
  }
  int on_rail(int t, int site) const {
    const Machine& m = machine;
    if (t == 0) return 1;
    if (t < m.tiers) return by_rail[(size_t)m.uplink(t, site) * m.rails + m.rail[site]];
    int total = 0;
    for (int other : sites)
      if (m.rail[other] == m.rail[site]) total += on_site[other];
    return total;
  }

  void touch(const Ints& atoms) override {
    OnUplinks::touch(atoms);
    for (int g : touched) std::swap(were_at[g], members_at[g]);
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
    const double each = sign * lanes[g] * (sent.empty() ? 1.0 : sent[domains]);
    for (int site : sites)
      for (int t : m.outer) {
        const int outside = members - within(t, site);
        if (!outside) break;
        add(m.uplink(t, site), each * on_site[site] * outside);
      }
  }

  // Where the members of a group that is counted are.
  void note(int g) {
    const Machine& m = machine;
    const bool once = !sent.empty();
    const int outer = m.first_outer();
    const double crossing = once ? sent[domains] : 1.0;
    members_at[g].clear();
    for (int site : sites) {
      const int here = within(outer, site);
      const double nearby = once ? (double)members / here * sent_inside : 1.0;
      const double messages = once ? (double)(domains - 1) / std::max(members - here, 1) : 1.0;
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
          const int u = m.uplink(t, here.site);
          busy = std::max(busy, load[u] / m.capacity[u]);
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
  Messages(const Cost& cost, const Given& of) : OnUplinks(cost, of, 1), size(of.real("size")) {
    const Machine& m = machine;
    adds_up = !m.thin.empty();
    // Below what one GPU sends by itself no uplink holds anybody up.
    double most = 0.0;
    for (int t = m.tiers; t-- > 0;) {
      most = std::max(most, m.bandwidth[t]);
      for (int u = m.first_uplink[t]; u < m.first_uplink[t + 1]; ++u)
        for (int way : {u, m.uplinks() + u}) harmless[way] = m.capacity[way] / most;
    }
  }

 private:
  void add_load(int p, double sign) override {
    const int from = sender(p), to = receiver(p);
    machine.on_way(machine.thin, from, to, machine.tier(from, to), [&](int u) { add(u, sign * lanes[p]); });
  }
  void price(int p) override {
    const Machine& m = machine;
    const int from = sender(p), to = receiver(p), common = m.tier(from, to);
    double seconds = size / m.bandwidth[common] / std::min(m.factor[from], m.factor[to]);
    m.on_way(m.thin, from, to, common, [&](int u) { seconds = std::max(seconds, load[u] * size / m.capacity[u]); });
    seconds += m.latency[common];
    if (m.has_rails && m.rail[from] != m.rail[to]) seconds += m.detour[common];
    set(p, 0, seconds, seconds);
  }
  int sender(int p) const { return layout.site_of(member[p][0]); }
  int receiver(int p) const { return layout.site_of(member[p][1]); }
};

}  // namespace placer
