// What moves see of a placement: units on slots, domains as ranges of slots, and sets of
// units that belong together. A change is a list of pairs of slots that swap what they hold,
// one after the other: {a, b} and {b, c} rotate three. Cells are scale-up domains. A family
// (fence.hpp) has each unit in one of its sets, whose units are its mates; a partner is who a
// unit sends to where the job has traffic of its own.
#pragma once
#include "energy.hpp"
#include "fence.hpp"
#include "runs.hpp"

namespace placer {

struct Range { int first, end; };

// What it costs that units leave the cells they were in before.
struct Home {
  Ints cell, ranks;             // of each unit: its cell, -1: none; ranks that lose their GPUs
  Ints affected;                // units of cells that lost GPUs
  double price = 0.0;           // of a rank that moves
  int64_t away = 0;             // ranks that do

  bool is_any() const { return !cell.empty(); }
  int of(int unit, int at) const { return cell[unit] >= 0 && cell[unit] != at ? ranks[unit] : 0; }
};

struct Search {
  // What one move exchanges at most: units, or places of nodes in their order; and how many
  // parts it puts out, one for the other.
  static constexpr int MOST = 600, FAR = 200, LONGEST = 4;

  Energy& energy;
  const Machine& machine;
  const Layout& layout;
  Random random{0};
  int width;                    // atoms of a unit
  int units, slots, levels;     // levels: tiers outside a cell
  std::vector<Family> families;
  Rows partners;                // units that each sends to, or receives from
  Ints room;                    // free slots of each cell
  Runs runs;                    // of a launch by nodes, empty else
  Home home;                    // of a job that runs already, empty else
  Fence fence;                  // rules

  Search(Energy& energy, int width, std::vector<Family> families)
      : energy(energy), machine(energy.cost().machine), layout(energy.cost().layout), width(width),
        families(std::move(families)) {
    units = (int)layout.slot_of.size() / width;
    slots = (int)layout.site.size() / width;
    levels = machine.tiers - machine.first_outer();
  }

  int slot_of(int unit) const { return layout.slot_of[(size_t)unit * width] / width; }
  int unit_at(int slot) const {
    const int atom = layout.atom_at[(size_t)slot * width];
    return atom < 0 ? -1 : atom / width;
  }
  // Domain of a slot, 0: the scale-up domain, or cell; and the slots of one.
  int domain(int level, int slot) const {
    return machine.child(machine.first_outer() + level, layout.site[(size_t)slot * width]);
  }
  int cell(int slot) const { return domain(0, slot); }
  int cell_of(int unit) const { return cell(slot_of(unit)); }
  Range range(int level, int domain) const {
    const int u = machine.first_uplink[machine.first_outer() + level] + domain;
    return {(layout.first[u] + width - 1) / width, layout.end[u] / width};
  }
  int any_in(Range r) { return r.first + random.below(r.end - r.first); }

  void count_room() {
    room.assign(machine.children(machine.first_outer()), 0);
    for (int slot = 0; slot < slots; ++slot)
      if (unit_at(slot) < 0) ++room[cell(slot)];
  }
  // Ranks of the units on some slots that are not where they were.
  int64_t away(const Ints& some) const {
    int64_t count = 0;
    if (home.is_any())
      for (int slot : some)
        if (const int unit = unit_at(slot); unit >= 0) count += home.of(unit, cell(slot));
    return count;
  }
  void count_away() {
    home.away = 0;
    if (home.is_any())
      for (int unit = 0; unit < units; ++unit) home.away += home.of(unit, cell_of(unit));
  }
  bool is_away(int unit) const { return home.is_any() && home.of(unit, cell_of(unit)) > 0; }
  // A unit that is worth moving: one that breaks a rule or has lost its cell, else the best of
  // so many drawn (`energy.hpp` says what that means for each cost).
  int waited_for(int tries) {
    if (fence.broken && random.below(4))
      if (const int unit = fence.any_broken(random); unit >= 0) return unit;
    if (!home.affected.empty() && random.below(4)) return home.affected[random.below((int)home.affected.size())];
    return energy.waited_for(random, tries);
  }
  bool has_sets() const {
    for (const Family& family : families)
      if (family.units.count() < units) return true;
    return false;
  }
  // Somebody whom a unit sends to, or receives from; -1 if nobody.
  int partner_of(int unit) {
    return partners[unit].size() ? partners[unit].any(random) : -1;
  }
  // How many of its partners are in a unit's own cell.
  int ties(int unit) const {
    int count = 0;
    const int at = cell_of(unit);
    for (int u : partners[unit]) count += cell_of(u) == at;
    return count;
  }
  const Family& any_family() { return families[random.below((int)families.size())]; }
  // Somebody of a set of a unit, or a partner.
  int mate_of(int unit) {
    if (partners.count() && random.below(2))
      if (const int partner = partner_of(unit); partner >= 0) return partner;
    const Family& family = any_family();
    return family.units[family.of_unit[unit]].any(random);
  }
  // Whether one of a few units of a set, as drawn, is in a domain.
  bool seems_in(const Family& family, int set, int level, int domain) {
    for (int i = 0; i < 3; ++i)
      if (this->domain(level, slot_of(family.units[set].any(random))) == domain) return true;
    return false;
  }
  // Slots of a set's units in a domain, as far as no pair has them.
  Ints in_domain(const Family& family, int set, int level, int domain, const Pairs& pairs) const {
    Ints found;
    for (int unit : family.units[set])
      if (const int slot = slot_of(unit); this->domain(level, slot) == domain && !has(pairs, slot)) found.push_back(slot);
    return found;
  }
  static bool has(const Pairs& pairs, int slot) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.second == slot || pair.first == slot; });
  }
};

}  // namespace placer
