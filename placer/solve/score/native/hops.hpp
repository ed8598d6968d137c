// The hop cost of a placement, kept up to date change by change: edges by axis and tier.
#pragma once
#include "cost.hpp"

namespace placer {

struct Hops : Cost {
  struct Edge { int other, times, axis; };

  Reals weights, distance;             // of axes, of tiers
  std::vector<int64_t> inside;         // [axis][tier] of the edges inside atoms
  std::vector<int> first{0};           // edges of each atom
  std::vector<Edge> edges;

  void set_edges(const Given& of) {
    distance = of.reals("distance");
    weights = of.reals("weights");
    for (int count : of.ints("inside")) inside.push_back(count);
    const Rows ends = of.rows("ends"), of_atom = ends.turned((int)layout.site.size());
    const Ints times = of.ints("times"), axis = of.ints("axis");
    for (int atom = 0; atom < of_atom.count(); ++atom) {
      for (int e : of_atom[atom]) edges.push_back({ends[e][ends[e][0] == atom], times[e], axis[e]});
      first.push_back((int)edges.size());
    }
  }

  double value() override {
    double sum = 0.0;
    for (size_t a = 0; a < weights.size(); ++a) {
      double along = 0.0;
      for (size_t t = 0; t < distance.size(); ++t) along += counts[a * distance.size() + t] * distance[t];
      sum += weights[a] * along;
    }
    return sum;
  }
  // What the edges of an atom cost.
  double cost_of(int atom) const {
    double sum = 0.0;
    const int site = layout.site_of(atom);
    for (int e = first[atom]; e < first[atom + 1]; ++e)
      sum += weights[edges[e].axis] * edges[e].times * distance[machine.tier(site, layout.site_of(edges[e].other))];
    return sum;
  }
  void load(const Ints& slots) override {
    layout.load(slots);
    counts = inside;
    for (int atom = 0; atom < (int)slots.size(); ++atom) {
      const int site = layout.site_of(atom);
      for (int e = first[atom]; e < first[atom + 1]; ++e)
        if (edges[e].other > atom) at(edges[e], site) += edges[e].times;
    }
  }
  void change(const Pairs& pairs) override {
    layout.made = pairs;
    before = counts;
    for (const auto& [one, other] : pairs) {
      const int a = layout.atom_at[one], b = layout.atom_at[other];
      const int here = layout.site[one], there = layout.site[other];
      if (here != there) {
        if (a >= 0) go(a, b, here, there);
        if (b >= 0) go(b, a, there, here);
      }
      layout.exchange(one, other);
    }
  }
  void undo() override {
    layout.undo();
    counts = before;
  }

 private:
  std::vector<int64_t> counts, before;  // [axis][tier]

  int64_t& at(const Edge& edge, int site) {
    return counts[edge.axis * distance.size() + machine.tier(site, layout.site_of(edge.other))];
  }
  // Two that change places stay as far apart as they were.
  void go(int atom, int partner, int from, int to) {
    for (int e = first[atom]; e < first[atom + 1]; ++e) {
      if (edges[e].other == partner) continue;
      at(edges[e], from) -= edges[e].times;
      at(edges[e], to) += edges[e].times;
    }
  }
};

}  // namespace placer
