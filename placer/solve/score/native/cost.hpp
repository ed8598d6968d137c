// A cost of a placement, kept up to date change by change.
#pragma once
#include "layout.hpp"

namespace placer {

struct Cost {
  Machine machine;
  Layout layout;

  Cost() = default;
  Cost(const Cost&) = delete;  // others point at its machine and layout
  virtual ~Cost() = default;

  virtual void load(const Ints& slots) = 0;
  // A change: pairs of slots whose atoms change places, one pair after the other. `finish`
  // prices what it left out; then `keep` or `undo`.
  virtual void change(const Pairs& pairs) = 0;
  virtual void finish() {}
  virtual void keep() {}
  virtual void undo() = 0;
  virtual double value() = 0;
  virtual double at_least() { return value(); }  // a bound on it that takes no time
  // The share of each atom in what it costs, 1 at most.
  virtual Reals pressure() = 0;
};

}  // namespace placer
