// An operation: groups of atoms, all of which run it at once, and what each takes.
#pragma once
#include <functional>
#include "layout.hpp"

namespace placer {

// What every operation of a step has in common. A change of the layout is four calls:
// `before` and `after` tell of the groups that move, `settle` prices what changed, and
// `undo` takes all of it back.
struct Operation {
  const Machine* machine = nullptr;
  const Layout* layout = nullptr;
  int groups = 0, sizes = 1;
  Rows of_atom;               // groups of each atom
  Reals seconds;              // [size][group]
  Reals mean;                 // of the members of each group, or as seconds
  Ints changed;               // groups whose seconds `settle` changed
  Journal<double> kept;
  // What the scorer itself says, where it is not worked out here.
  std::function<void(const Ints& slot_of, Reals& seconds)> ask;

  virtual ~Operation() = default;
  virtual void rebuild() = 0;
  virtual void settle() = 0;
  virtual void before_move(const Ints&) {}
  virtual void after_move(const Ints&) {}
  virtual bool is_slow() const { return false; }  // priced last, where still asked for

  double of(int size, int group) const { return seconds[(size_t)size * groups + group]; }

  // The groups that the atoms of a change are in, once each.
  void touch(const Ints& atoms) {
    touched.clear();
    marks.wipe();
    for (int atom : atoms)
      for (const int* g = of_atom.begin(atom); g != of_atom.end(atom); ++g)
        if (marks.mark(*g)) touched.push_back(*g);
    before_move(touched);
  }
  void moved() { after_move(touched); }
  virtual void undo() {
    kept.undo();
    changed.clear();
  }
  virtual void keep() { kept.kept.clear(); }

 protected:
  Ints touched;
  Marks marks;
  Reals answer;
  void tell_asked() {
    answer.assign(seconds.size(), 0.0);
    ask(layout->slot_of, answer);
    for (int g = 0; g < groups; ++g)
      for (int s = 0; s < sizes; ++s) tell(g, s, answer[(size_t)s * groups + g], answer[g]);
  }
  void prepare() {
    marks.resize(groups);
    seconds.assign((size_t)groups * sizes, 0.0);
    mean.assign(groups, 0.0);
  }
  void tell(int group, int size, double value, double average) {
    double& place = seconds[(size_t)size * groups + group];
    if (place != value) {
      kept.set(place, value);
      if (changed.empty() || changed.back() != group) changed.push_back(group);
    }
    if (size == 0 && mean[group] != average) kept.set(mean[group], average);
  }
};

// All groups are priced anew after each change.
struct PricedAnew : Operation {
  bool is_slow() const override { return true; }
  void rebuild() override {
    price();
    keep();
    changed.clear();
  }
  void settle() override {
    changed.clear();
    price();
  }

 private:
  virtual void price() = 0;
};

}  // namespace placer
