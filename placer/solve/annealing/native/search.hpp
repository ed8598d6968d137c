// What moves see of a placement: units on slots, domains as ranges of slots, and sets of
// units that belong together. A change is a list of pairs of slots that swap what they hold.
#pragma once
#include <utility>
#include "../../score/native/step.hpp"
#include "runs.hpp"

namespace placer {

using Pairs = std::vector<std::pair<int, int>>;

// xorshift128+ (Vigna 2017, "Further scramblings of Marsaglia's xorshift generators").
struct Random {
  uint64_t a, b;
  explicit Random(uint64_t seed) : a(seed * 0x9e3779b97f4a7c15ull + 1), b(seed ^ 0xd1b54a32d192ed03ull) {
    for (int i = 0; i < 20; ++i) next();
  }
  uint64_t next() {
    uint64_t x = a;
    const uint64_t y = b;
    a = y;
    x ^= x << 23;
    b = x ^ y ^ (x >> 17) ^ (y >> 26);
    return b + y;
  }
  double real() { return (double)(next() >> 11) * 0x1.0p-53; }
  int below(int n) { return (int)(((unsigned __int128)next() * (uint64_t)n) >> 64); }
};

// Sets of units along one axis or more: every unit is in one of them.
struct Family {
  Ints of_unit;
  Rows units;
};

struct Range { int first, end; };

struct Search {
  StepTime& step;
  Random random;
  int width;                    // atoms of a unit
  int units, slots, levels;     // levels: tiers outside the scale-up domain
  std::vector<Family> families;
  Rows of_block;                // units of each block of replicas
  Ints room;                    // free slots of each cell
  bool has_experts = false;     // family 0 is their groups
  const Operation* tokens = nullptr;  // their all-to-alls
  Runs runs;                    // of a launch by nodes, empty else

  Search(StepTime& step, uint64_t seed, int width, std::vector<Family> families, Rows of_block)
      : step(step), random(seed), width(width), families(std::move(families)), of_block(std::move(of_block)) {
    units = (int)step.layout.slot_of.size() / width;
    slots = (int)step.layout.site.size() / width;
    levels = step.machine.tiers - step.machine.first_outer();
    for (const Axis& axis : step.axes) {
      const Operation* found = step.operations[axis.operation].get();
      if (!axis.is_hop && dynamic_cast<const Exchange*>(found)) tokens = found;
    }
  }

  int slot_of(int unit) const { return step.layout.slot_of[(size_t)unit * width] / width; }
  int unit_at(int slot) const {
    const int atom = step.layout.atom_at[(size_t)slot * width];
    return atom < 0 ? -1 : atom / width;
  }
  // Domain of a slot, 0: the scale-up domain, or cell; and the slots of one.
  int domain(int level, int slot) const {
    return step.machine.child[step.machine.first_outer() + level][step.layout.site[(size_t)slot * width]];
  }
  int cell(int slot) const { return domain(0, slot); }
  int cell_of(int unit) const { return cell(slot_of(unit)); }
  Range range(int level, int domain) const {
    const int t = step.machine.first_outer() + level;
    return {(step.layout.first[t][domain] + width - 1) / width, step.layout.end[t][domain] / width};
  }
  int any_in(Range r) { return r.first + random.below(r.end - r.first); }

  void count_room() {
    room.assign(step.machine.capacity[step.machine.first_outer()].size(), 0);
    for (int slot = 0; slot < slots; ++slot)
      if (unit_at(slot) < 0) ++room[cell(slot)];
  }
  // A unit of the slowest of some blocks.
  int waited_for(int tries) {
    int block = random.below(of_block.count());
    for (int i = 1; i < tries; ++i) {
      const int other = random.below(of_block.count());
      if (step.block_s[other] > step.block_s[block]) block = other;
    }
    const int unit = of_block.begin(block)[random.below(of_block.size(block))];
    if (!tokens || tries <= 3) return unit;
    const int other = of_block.begin(block)[random.below(of_block.size(block))];
    return exchange_s(other) > exchange_s(unit) ? other : unit;
  }
  double exchange_s(int unit) const {
    const int atom = unit * width;
    return tokens->of_atom.size(atom) ? tokens->of(0, *tokens->of_atom.begin(atom)) : 0.0;
  }
  const Family& any_family() { return families[random.below((int)families.size())]; }
  // Whether a set has a unit in a cell; of a large one a few are looked at.
  bool seems_at(const Family& family, int set, int at) {
    const int size = family.units.size(set), *units = family.units.begin(set);
    if (size > 64) {
      for (int i = 0; i < 3; ++i)
        if (cell_of(units[random.below(size)]) == at) return true;
      return false;
    }
    for (int i = 0; i < size; ++i)
      if (cell_of(units[i]) == at) return true;
    return false;
  }
  static bool has(const Pairs& pairs, int slot) {
    for (const auto& pair : pairs) if (pair.second == slot || pair.first == slot) return true;
    return false;
  }
};

}  // namespace placer
