// A cost of a placement, kept up to date change by change.
#pragma once
#include <cmath>
#include "given.hpp"

namespace placer {

struct Cost {
  Machine machine;
  Layout layout;

  Cost() = default;
  Cost(const Cost&) = delete;  // others point at its machine and layout
  virtual ~Cost() = default;

  void set_machine(const Given& of) {
    Machine& m = machine;
    m.scale_up = of.number("scale_up");
    m.capacity = of.lists<double>("capacity");
    m.bandwidth = of.reals("bandwidth");
    m.latency = of.reals("latency");
    m.detour = of.reals("detour");
    m.rail = of.ints("rail");
    m.factor = of.reals("factor");
    m.speed = of.reals("speed");
    m.tiers = (int)m.bandwidth.size();
    const std::vector<Ints> child = of.lists<int>("child");
    for (size_t site = 0; site < m.rail.size(); ++site)
      for (const Ints& tier : child) m.child_of.push_back(tier[site]);
    for (int r : m.rail) m.rails = std::max(m.rails, r + 1);
    for (double d : m.detour) m.has_rails |= d > 0;
    for (const Reals& tier : m.capacity) m.first_uplink.push_back(m.uplinks() + (int)tier.size());
    m.shared = of.reals("shared");
    for (int t = 0; t < m.tiers; ++t) {
      const double* own = m.shared.data() + m.uplink(t, 0);
      if (std::any_of(own, own + m.capacity[t].size(), [](double rate) { return std::isfinite(rate); })) m.thin.push_back(t);
    }
    layout.site = of.ints("site");
    layout.atom_at.assign(layout.site.size(), -1);
    for (int t = 0; t < m.tiers; ++t) {
      const int count = 1 + *std::max_element(child[t].begin(), child[t].end());
      Ints first(count, 0), end(count, 0);
      for (int slot = (int)layout.site.size(); slot-- > 0;) {
        const int c = child[t][layout.site[slot]];
        if (!end[c]) end[c] = slot + 1;
        first[c] = slot;
      }
      layout.first.push_back(first);
      layout.end.push_back(end);
    }
  }

  virtual void load(const Ints& slots) = 0;
  // A change: pairs of slots whose atoms change places, one pair after the other. `finish`
  // prices what it left out; then `keep` or `undo`.
  virtual void change(const Pairs& pairs) = 0;
  virtual void finish() {}
  virtual void keep() {}
  virtual void undo() = 0;
  virtual double value() = 0;
  virtual double at_least() { return value(); }  // a bound on it that takes no time
};

}  // namespace placer
