// Reduce-scatters and all-gathers around rings: placer.cost.rings, placer.cost.fair_share
// and placer.cost.collectives.ring_pass. What the forms say of a number of domains comes
// in tables.
#pragma once
#include <cmath>
#include "operation.hpp"
#include "parts.hpp"

namespace placer {

struct Rings : Operation {
  Ints lanes;                // groups alike that are kept once
  int members;
  Reals buffer;              // bytes of each size
  double moved;              // of a byte of the buffer on every edge
  Reals steps_outside, steps_inside;  // [domains]
  bool is_even;              // nothing inside a scale-up domain tells its members apart

  // Atoms by first appearance, or every member where order counts.
  Rings(const Cost& cost, const Given& of)
      : Operation(cost, of.rows("member"), (int)of.reals("buffer").size()), lanes(of.ints("lanes")),
        members(of.number("members")), buffer(of.reals("buffer")), moved(of.real("moved")),
        steps_outside(of.reals("steps_outside")), steps_inside(of.reals("steps_inside")),
        is_even(of.flag("is_even")), rings(groups), was(groups), thin(groups), thin_before(groups), pace(groups, 0.0),
        parts(machine, layout, member, of_atom, of.ints("weight"), members) {
    at.assign(parts.count(), 0);
    const auto [least, most] = std::minmax_element(machine.factor.begin(), machine.factor.end());
    is_alike = *least == *most;
  }

  bool is_slow() const override { return true; }

  void rebuild() override {
    parts.rebuild();
    for (int g = 0; g < groups; ++g) route(g, rings[g]);
    Operation::rebuild();
  }

  void settle() override {
    changed.clear();
    parts.move(touched);
    changed_rings.clear();
    bool shares = false;
    for (int g : touched) {
      if (is_even && is_alike && !parts.has_moved(g)) continue;
      changed_rings.push_back(g);
      swap(g);
      route(g, rings[g]);
      shares = shares || uses_thin(thin[g]) || uses_thin(thin_before[g]);
    }
    if (shares) return price_all();
    for (int g : changed_rings) price(g, alone(rings[g]));
  }
  void undo() override {
    for (int g : changed_rings) swap(g);
    changed_rings.clear();
    parts.undo();
    Operation::undo();
  }
  void keep() override {
    changed_rings.clear();
    parts.keep();
    Operation::keep();
  }

 protected:
  struct Hop { int from, to, tier; };  // sites of a hop over thin uplinks
  struct Ring {
    int domains = 0, fewest = 1;
    double factor = 1.0, inner_pace = 0.0, outer_pace = 0.0;
    double inner_latency = 0.0, outer_latency = 0.0;
    double spread = 1.0;  // mean over domains of one by the members there
    double tree_pace = 0.0, tree_latency = 0.0;  // of the double tree between domains
  };
  struct Thin { std::vector<Hop> hops, tree; };
  std::vector<Ring> rings, was;
  std::vector<Thin> thin, thin_before;  // of each ring
  Reals pace;
  Parts parts;
  Ints order;                   // of the parts of a group, where it is asked for
  Reals load;                   // of each uplink

  bool uses_thin(const Thin& ring) const { return !ring.hops.empty(); }
  double alone(const Ring& r) const { return std::max(r.inner_pace, r.outer_pace / r.fewest); }

  // After all else of a ring is known.
  virtual void scan_more(int, Ring&) {}

 private:
  bool is_alike;                // all GPUs send as fast
  Ints at, changed_rings, sites;

  void swap(int g) {
    std::swap(was[g], rings[g]);
    if (!machine.thin.empty()) std::swap(thin_before[g], thin[g]);
  }
  void route(int g, Ring& ring) {
    const Machine& m = machine;
    const int domains = ring.domains = parts.domains[g];
    const int* parts_of = parts.sizes_of(g);
    ring.fewest = 0;
    ring.spread = 0.0;
    for (int size = 1, left = domains; left; ++size) {
      if (!parts_of[size]) continue;
      if (!ring.fewest) ring.fewest = size;
      ring.spread += (double)parts_of[size] / size / domains;
      left -= parts_of[size];
    }
    double inner = 0, outer = 0, inner_latency = 0, outer_latency = 0;
    const int* hops_of = parts.hops_of(g);
    for (int t = 0; t < m.tiers; ++t) {
      const int count = hops_of[2 * t] + hops_of[2 * t + 1];
      if (!count) continue;
      outer = std::max(outer, 1 / m.bandwidth[t]);
      outer_latency += count * m.latency[t] + hops_of[2 * t + 1] * m.detour[t];
    }
    ring.factor = m.factor[0];
    for (int e = member.start[g]; !is_alike && e < member.start[g + 1]; ++e) {
      const double factor = m.factor[layout.site_of(member.entry[e])];
      ring.factor = e == member.start[g] ? factor : std::min(ring.factor, factor);
    }
    thin[g].hops.clear();
    const int inside = domains == 1 ? members : members - domains;
    if (is_even) {
      if (inside) inner = 1 / m.bandwidth[0], inner_latency = inside * m.latency[0];
      if (!m.thin.empty() && domains > 1) {
        parts.in_order(g, order);
        for (int d = 0; d < domains; ++d) cross(g, parts.at[order[d]].site, parts.at[order[d + 1 < domains ? d + 1 : 0]].site);
      }
    } else {
      by_domain(g);
      for (int i = 0; i < members; ++i) {
        const int from = sites[i], to = sites[i + 1 < members ? i + 1 : 0];
        if (domains > 1 && m.scale_up_domain(from) != m.scale_up_domain(to)) {
          cross(g, from, to);
          continue;
        }
        const int t = m.tier(from, to);
        inner = std::max(inner, 1 / m.bandwidth[t]);
        inner_latency += m.latency[t];
      }
    }
    ring.inner_pace = inner / ring.factor;
    ring.outer_pace = outer / ring.factor;
    ring.inner_latency = inside ? inner_latency / inside : 0.0;
    ring.outer_latency = domains > 1 ? outer_latency / domains : 0.0;
    scan_more(g, ring);
  }
  // Sites in the order of the ring: domain after domain, in that of the ranks inside.
  void by_domain(int g) {
    parts.in_order(g, order);
    int place = 0;
    for (int entry : order) at[machine.scale_up_domain(parts.at[entry].site)] = place, place += parts.at[entry].size;
    sites.assign(members, 0);
    for (int a : member[g]) {
      const int site = layout.site_of(a);
      sites[at[machine.scale_up_domain(site)]++] = site;
    }
  }
  void cross(int g, int from, int to) {
    if (machine.thin.empty()) return;
    const int t = machine.tier(from, to);
    if (machine.thin.front() <= t) thin[g].hops.push_back({from, to, t});
  }

 protected:
  virtual void price(int g, double of_pace) {
    const Ring& r = rings[g];
    const double latency = steps_outside[r.domains] * r.outer_latency +
                           steps_inside[r.domains] * r.inner_latency;
    // On the way to a ring of as many NICs everywhere: what its domains have on the mean.
    const double average = std::max(r.inner_pace, r.outer_pace * r.spread) * moved * buffer[0] + latency;
    for (int s = 0; s < sizes; ++s) set(g, s, moved * buffer[s] * of_pace + latency, average);
  }
  void price_all() override {
    if (machine.thin.empty()) for (int g = 0; g < groups; ++g) pace[g] = alone(rings[g]);
    else share(&Thin::hops, [](const Ring& r) { return r.outer_pace; }, pace);
    for (int g = 0; g < groups; ++g) price(g, std::max(rings[g].inner_pace, pace[g]));
  }

  // Max-min fair parts of thin uplinks: placer.cost.fair_share.fair_pace.
  template <class Alone> void share(std::vector<Hop> Thin::*hops, const Alone& alone_of, Reals& found) {
    const Machine& m = machine;
    has.assign(members + 2, 0);
    from_hop.resize(groups + 1);
    from_hop[0] = 0;
    together.assign(groups, 0.0);
    apart.resize(groups);
    int top = 0;
    for (int g = 0; g < groups; ++g) {
      const Ring& r = rings[g];
      has[r.fewest] = 1;
      top = std::max(top, r.fewest);
      apart[g] = alone_of(r) / r.fewest;
      from_hop[g + 1] = from_hop[g] + (thin[g].*hops).size() * m.thin.size() * 2;
    }
    by_hop.assign(from_hop[groups], 0.0);
    for (int flows = 1; flows <= top; ++flows) {
      if (!has[flows]) continue;
      int next = flows + 1;
      while (next <= top && !has[next]) ++next;
      const double width = 1.0 / flows - (next <= top ? 1.0 / next : 0.0);
      load.assign(m.capacity.size(), 0.0);
      for (int g = 0; g < groups; ++g) {
        const Ring& r = rings[g];
        if (r.fewest > flows) continue;
        const double more = r.fewest * lanes[g];
        for (const Hop& hop : thin[g].*hops) m.on_way(m.thin, hop.from, hop.to, hop.tier, [&](int u) { load[u] += more; });
      }
      for (int g = 0; g < groups; ++g) {
        const Ring& r = rings[g];
        if (r.fewest > flows) continue;
        const double own = alone_of(r);
        double slowest = own;
        double* sums = by_hop.data() + from_hop[g];
        for (const Hop& hop : thin[g].*hops)
          m.on_way(m.thin, hop.from, hop.to, hop.tier, [&](int u) {
            const double here = std::max(own, load[u] / m.shared[u]);
            *sums++ += width * here;
            slowest = std::max(slowest, here);
          });
        together[g] += width * slowest;
      }
    }
    for (int g = 0; g < groups; ++g) {
      for (size_t i = from_hop[g]; i < from_hop[g + 1]; ++i) apart[g] = std::max(apart[g], by_hop[i]);
      found[g] = (apart[g] + together[g]) / 2;
    }
  }

  std::vector<char> has;
  std::vector<size_t> from_hop;
  Reals together, apart, by_hop;
};

// All-reduces: placer.cost.communicators.Communicators.all_reduce, by rings, by double trees
// between domains (placer.cost.trees), by reducing switches, or by the fastest that NCCL's
// tuner considers. What the forms of a ring say comes doubled.
struct AllReduces : Rings {
  bool by_ring, by_tree, by_switch, is_tuned, in_racks;
  Reals tree_buffers, buffers;     // [domains] out of a domain; as the form of a tree sees it
  double inside_share, between_share, switch_steps;
  Reals switched;                  // [size][domains][heads] bytes that a switch takes the time of
  int heads;

  AllReduces(const Cost& cost, const Given& of)
      : Rings(cost, of), by_ring(of.flag("by_ring")), by_tree(of.flag("by_tree")), by_switch(of.flag("by_switch")),
        is_tuned(of.flag("is_tuned")), in_racks(of.flag("in_racks")), tree_buffers(of.reals("tree_buffers")),
        buffers(of.reals("buffers")), inside_share(of.real("inside_share")),
        between_share(of.real("between_share")), switch_steps(of.real("switch_steps")),
        switched(of.reals("switched")), heads(of.number("heads")) {}

 private:
  Reals tree_pace_of;

  bool has_trees() const { return by_tree || by_switch; }
  static int parent(int vertex, int count) {
    if (vertex == 0) return -1;
    const int lowest = vertex & -vertex, cleared = vertex ^ lowest, up = cleared | (lowest << 1);
    return up < count ? up : cleared;
  }
  static int second_parent(int vertex, int count) {
    const bool odd = count % 2;
    const int found = parent(odd ? (vertex - 1 + count) % count : count - 1 - vertex, count);
    return found < 0 ? -1 : odd ? (found + 1) % count : count - 1 - found;
  }
  void scan_more(int g, Ring& ring) override {
    const Machine& m = machine;
    thin[g].tree.clear();
    ring.tree_pace = ring.tree_latency = 0.0;
    if (!has_trees() || ring.domains < 2) return;
    parts.in_order(g, order);
    double latency = 0.0;
    int edges = 0;
    for (int d = 0; d < ring.domains; ++d)
      for (const int over : {parent(d, ring.domains), second_parent(d, ring.domains)}) {
        if (over < 0) continue;
        const int low = parts.at[order[d]].site, high = parts.at[order[over]].site, t = m.tier(low, high);
        ring.tree_pace = std::max(ring.tree_pace, 1 / m.bandwidth[t]);
        latency += m.latency[t];
        if (m.has_rails && m.rail[low] != m.rail[high]) latency += m.detour[t];
        ++edges;
        if (m.thin.empty() || m.thin.front() > t) continue;
        thin[g].tree.push_back({low, high, t});
        thin[g].tree.push_back({high, low, t});
      }
    ring.tree_pace /= ring.factor;
    ring.tree_latency = latency / edges;
  }
  double halves(const Ring& r) const { return 2 * tree_buffers[r.domains]; }
  void price_all() override {
    tree_pace_of.assign(groups, 0.0);
    if (has_trees() && !machine.thin.empty()) {
      share(&Thin::tree, [this](const Ring& r) { return r.tree_pace * halves(r); }, tree_pace_of);
      for (int g = 0; g < groups; ++g) tree_pace_of[g] /= halves(rings[g]);
    } else {
      for (int g = 0; g < groups; ++g) tree_pace_of[g] = rings[g].tree_pace / rings[g].fewest;
    }
    Rings::price_all();
  }
  void price(int g, double of_pace) override {
    const Ring& r = rings[g];
    // Groups priced by themselves share no uplink.
    if (machine.thin.empty() || thin[g].tree.empty()) tree_pace_of[g] = r.tree_pace / r.fewest;
    const bool reduces = r.fewest > 2;
    const double levels = std::log2(r.domains) * r.tree_latency, between = tree_pace_of[g];
    for (int s = 0; s < sizes; ++s) {
      double least = 1e300;
      if (by_ring && !(is_tuned && reduces && in_racks))
        least = moved * buffer[s] * of_pace + steps_outside[r.domains] * r.outer_latency +
                steps_inside[r.domains] * r.inner_latency;
      if (by_tree && !(is_tuned && reduces && in_racks))
        least = std::min(least, buffer[s] * std::max(2.0 * r.inner_pace, buffers[r.domains] * between) +
                                    2.0 * (((double)members / r.domains - 1) * r.inner_latency + levels));
      if (by_switch && (!is_tuned || reduces)) {
        const double inside = std::max(r.inner_pace * between_share, between);
        const double pace = std::max(r.inner_pace * inside_share, tree_buffers[r.domains] * inside);
        const int at = (s * (members + 1) + r.domains) * (heads + 1) + std::min(r.fewest, heads);
        least = std::min(least, switched[at] * pace + switch_steps * r.inner_latency + 2.0 * levels);
      }
      set(g, s, least, least);
    }
  }
};

}  // namespace placer
