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
    m.capacity = of.reals("capacity");
    m.shared = of.reals("shared");
    m.bandwidth = of.reals("bandwidth");
    m.latency = of.reals("latency");
    m.detour = of.reals("detour");
    m.rail = of.ints("rail");
    m.factor = of.reals("factor");
    m.speed = of.reals("speed");
    m.tiers = (int)m.bandwidth.size();
    m.child_of = of.ints("child");
    for (int count : of.ints("children")) m.first_uplink.push_back(m.uplinks() + count);
    for (int r : m.rail) m.rails = std::max(m.rails, r + 1);
    for (double d : m.detour) m.has_rails |= d > 0;
    for (int t = 0; t < m.tiers; ++t) {
      const double* own = m.shared.data() + m.first_uplink[t];
      if (std::any_of(own, own + m.children(t), [](double rate) { return std::isfinite(rate); })) m.thin.push_back(t);
      if (t > m.scale_up) m.outer.push_back(t);
    }
    layout.site = of.ints("site");
    layout.atom_at.assign(layout.site.size(), -1);
    layout.first.assign(m.uplinks(), 0);
    layout.end = layout.first;
    for (int slot = (int)layout.site.size(); slot-- > 0;)
      for (int t = 0; t < m.tiers; ++t) {
        const int u = m.uplink(t, layout.site[slot]);
        if (!layout.end[u]) layout.end[u] = slot + 1;
        layout.first[u] = slot;
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
