// The hop cost of a placement, kept up to date change by change: edges by axis and tier.
#pragma once
#include <utility>
#include "operation.hpp"

namespace placer {

struct Hops {
  Machine machine;
  Layout layout;
  struct Edges { double weight; Rows of_atom; Ints one, other, times; };
  std::vector<Edges> axes;
  Reals distance;
  std::vector<std::vector<int64_t>> counts;     // [axis][tier], of edges inside atoms too
  std::vector<std::vector<int64_t>> inside;     // [axis][tier of the slot] of each atom
  std::vector<Marks> seen;

  double value() const {
    double sum = 0.0;
    for (size_t a = 0; a < axes.size(); ++a) {
      double along = 0.0;
      for (size_t t = 0; t < distance.size(); ++t) along += counts[a][t] * distance[t];
      sum += axes[a].weight * along;
    }
    return sum;
  }
  // The cost of each atom's edges, in that of the dearest.
  Reals pressure() const {
    Reals found(layout.slot_of.size(), 0.0);
    for (const Edges& edges : axes)
      for (size_t e = 0; e < edges.one.size(); ++e) {
        const int from = layout.site_of(edges.one[e]), to = layout.site_of(edges.other[e]);
        const double cost = edges.weight * distance[machine.tier(from, to)] * edges.times[e];
        found[edges.one[e]] += cost;
        found[edges.other[e]] += cost;
      }
    const double most = *std::max_element(found.begin(), found.end());
    for (double& value : found) value = most > 0 ? value / most : 1.0;
    return found;
  }
  void load(const Ints& slots) {
    layout.load(slots);
    seen.resize(axes.size());
    for (size_t a = 0; a < axes.size(); ++a) {
      counts[a] = inside[a];
      seen[a].resize(axes[a].one.size());
      for (size_t e = 0; e < axes[a].one.size(); ++e) count(a, (int)e, 1);
    }
  }
  void change(const std::vector<std::pair<int, int>>& pairs) {
    made = pairs;
    before = counts;
    for (auto& marks : seen) marks.wipe();
    touched.clear();
    for (const auto& [one, other] : pairs)
      for (int slot : {one, other}) {
        const int atom = layout.atom_at[slot];
        if (atom < 0) continue;
        for (size_t a = 0; a < axes.size(); ++a)
          for (const int* e = axes[a].of_atom.begin(atom); e != axes[a].of_atom.end(atom); ++e)
            if (seen[a].mark(*e)) touched.push_back({(int)a, *e}), count(a, *e, -1);
      }
    for (const auto& [one, other] : pairs) layout.exchange(one, other);
    for (const auto& [a, e] : touched) count(a, e, 1);
  }
  void undo() {
    for (size_t i = made.size(); i-- > 0;) layout.exchange(made[i].first, made[i].second);
    counts = before;
  }

 private:
  std::vector<std::pair<int, int>> made, touched;
  std::vector<std::vector<int64_t>> before;
  void count(size_t a, int e, int sign) {
    const Edges& edges = axes[a];
    const int from = layout.site_of(edges.one[e]), to = layout.site_of(edges.other[e]);
    counts[a][machine.tier(from, to)] += sign * edges.times[e];
  }
};

}  // namespace placer
