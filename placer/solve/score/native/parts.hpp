// The members of each group by scale-up domain. What rings and trees depend on is counted: a
// change costs the domains that it touches, whatever the groups hold elsewhere.
#pragma once
#include <numeric>
#include "cost.hpp"

namespace placer {

struct Parts {
  // Members in one domain: how many, where the first is, on which rails.
  struct Part {
    int size = 0, site = 0, rails = 0;
    bool lies_as(const Part& other) const { return site == other.site && rails == other.rails; }
  };
  // Parts stand at their first members, and follow each other in the ring as these do.
  std::vector<Part> at;
  Ints domains;                         // of each group
  struct Placed { int group, entry; Part part; };

  Parts(const Machine& machine, const Layout& layout, const Rows& member, const Rows& of_atom, const Ints& weight, int members)
      : machine(machine), layout(layout), member(member), of_atom(of_atom), members(members),
        tier(machine.first_outer()), of_entry(of_atom.entry.size()) {
    groups_seen.resize(member.count());
    seen.resize(tier < machine.tiers ? machine.children(tier) : 1);
    Ints next = of_atom.start, last(of_atom.count(), -1);
    for (int g = 0; g < member.count(); ++g)
      for (int entry = member.start[g]; entry < member.start[g + 1]; ++entry) {
        const int atom = member.entry[entry];
        if (last[atom] != g) last[atom] = g, of_entry[next[atom]++] = {g, entry, 0};
        of_entry[next[atom] - 1].weight += weight[entry];
      }
  }

  int count() const { return (int)seen.at.size(); }  // of the machine's domains
  // How many hops of a group's ring: by tier, those without a detour and those with one.
  const int* hops_of(int g) const { return hops.data() + (size_t)g * machine.tiers * 2; }
  const int* sizes_of(int g) const { return sizes.data() + (size_t)g * (members + 1); }  // parts by size
  // Where the parts of a group stand, in the order of its ring.
  void in_order(int g, Ints& order) const {
    order.clear();
    for (int entry = member.start[g]; entry < member.start[g + 1]; ++entry)
      if (at[entry].size) order.push_back(entry);
  }

  void rebuild() {
    const int groups = member.count();
    at.assign(member.entry.size(), {});
    domains.assign(groups, 0);
    hops.assign(groups * machine.tiers * 2, 0);
    sizes.assign(groups * (members + 1), 0);
    latest.assign(groups, -1);
    changed.resize(count());
    std::iota(changed.begin(), changed.end(), 0);
    Ints every(groups);
    std::iota(every.begin(), every.end(), 0);
    find(every);
    keep();
  }
  // Groups moved as the layout says.
  void move(const Ints& moved) {
    seen.wipe();
    groups_seen.wipe();
    changed.clear();
    for (const auto& [one, other] : layout.made)
      for (int slot : {one, other})
        if (const int d = machine.scale_up_domain(layout.site[slot]); seen.mark(d)) changed.push_back(d);
    find(moved);
  }
  bool has_moved(int g) const { return groups_seen.has(g); }  // with the last change
  void keep() { before.clear(); }
  void undo() {
    for (size_t i = before.size(); i-- > 0;) put(before[i]);
    before.clear();
  }

 private:
  struct Entry { int group, entry, weight; };  // the first of an atom in a group, and its members
  struct First { int group, entry, found; };
  const Machine& machine;
  const Layout& layout;
  const Rows &member, &of_atom;         // of the operation
  int members, tier;                    // of a group; of scale-up domains
  std::vector<Entry> of_entry;          // of each atom and group
  Ints hops, sizes;                     // of each group
  std::vector<Placed> found;            // in the domains of a change
  std::vector<First> firsts;
  std::vector<Placed> before;           // parts that the change replaced
  Marks seen, groups_seen;
  Ints latest;                          // how many were found with the last of each group that moves, -1: it does not
  Ints changed;                         // domains

  void find(const Ints& moved) {
    found.clear();
    firsts.clear();
    for (int g : moved) latest[g] = 0;
    const bool is_all = tier == machine.tiers;
    const int first_uplink = is_all ? 0 : machine.first_uplink[tier];
    const int *atom_at = layout.atom_at.data(), *site_of_slot = layout.site.data(), *start = of_atom.start.data();
    for (int d : changed) {
      const int end = is_all ? (int)layout.site.size() : layout.end[first_uplink + d], before = (int)found.size();
      for (int slot = is_all ? 0 : layout.first[first_uplink + d]; slot < end; ++slot) {
        const int atom = atom_at[slot], site = site_of_slot[slot];
        if (atom < 0) continue;
        for (int i = start[atom]; i < start[atom + 1]; ++i) {
          const auto [g, entry, weight] = of_entry[i];
          int& last = latest[g];
          if (last < 0) continue;
          if (last <= before) found.push_back({g, entry, {}}), last = (int)found.size();
          if (at[entry].size) firsts.push_back({g, entry, last - 1});
          Placed& here = found[last - 1];
          if (entry <= here.entry) here.entry = entry, here.part.site = site;
          here.part.size += weight;
          here.part.rails |= 1 << machine.rail[site];
        }
      }
    }
    for (int g : moved) latest[g] = -1;
    for (const First& first : firsts)
      if (found[first.found].entry != first.entry) replace({first.group, first.entry, {}});
    for (const Placed& one : found) replace(one);
  }
  void replace(const Placed& placed) {
    const Part& part = at[placed.entry];
    if (part.size == placed.part.size && part.lies_as(placed.part)) return;
    before.push_back({placed.group, placed.entry, part});
    groups_seen.mark(placed.group);
    put(placed);
  }
  void put(const Placed& placed) {
    const auto& [g, entry, next] = placed;
    Part& part = at[entry];
    int* count = sizes.data() + (size_t)g * (members + 1);
    const bool stays = part.size && next.size && part.lies_as(next);
    if (part.size) {
      --count[part.size];
      if (!stays) join(g, entry, -1), --domains[g];
    }
    part = next;
    if (part.size) {
      ++count[part.size];
      if (!stays) ++domains[g], join(g, entry, 1);
    }
  }
  // Count the hops from and to a part, or no longer.
  void join(int g, int entry, int by) {
    if (domains[g] < 2) return;
    const int begin = member.start[g], end = member.start[g + 1];
    int last = entry, next = entry;
    do last = (last == begin ? end : last) - 1;
    while (!at[last].size);
    do next = next + 1 == end ? begin : next + 1;
    while (!at[next].size);
    int* count = hops.data() + (size_t)g * machine.tiers * 2;
    count[hop(last, entry)] += by;
    count[hop(entry, next)] += by;
    if (domains[g] > 2) count[hop(last, next)] -= by;
  }
  // Tier of a hop, and whether it takes a detour.
  int hop(int from, int to) const {
    const int here = at[from].rails, there = at[to].rails, shared = here & there;
    return machine.tier(at[from].site, at[to].site) * 2 + (shared != here && shared != there);
  }
};

}  // namespace placer
