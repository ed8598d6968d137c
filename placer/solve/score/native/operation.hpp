// An operation: groups of atoms, all of which run it at once, and what each takes.
#pragma once
#include <functional>
#include "layout.hpp"
#include "random.hpp"

namespace placer {

// How far what takes longest is above a target, entry by entry: with many entries alike, each
// that falls is a gain.
struct Excess {
  double target = 0.0, sum = 0.0;
  double of(double seconds) const { return seconds > target ? seconds - target : 0.0; }
};

// Some numbers of many, one of which is drawn.
struct Drawn {
  Ints list, place;

  void clear(size_t count) {
    list.clear();
    place.assign(count, -1);
  }
  void set(int number, bool is_in) {
    int& at = place[number];
    if ((at >= 0) == is_in) return;
    if (is_in) {
      at = (int)list.size();
      list.push_back(number);
      return;
    }
    place[list.back()] = at;
    list[at] = list.back();
    list.pop_back();
    at = -1;
  }
};

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
  // Where the slowest of all entries sets a time: groups, or ports.
  bool is_of_kind = false;
  Excess excess;
  Drawn above;
  // What the scorer itself says, where it is not worked out here.
  std::function<void(const Ints& slot_of, Reals& seconds)> ask;

  virtual ~Operation() = default;
  virtual void rebuild() = 0;
  virtual void settle() = 0;
  virtual void before_move(const Ints&) {}
  virtual void after_move(const Ints&) {}
  virtual bool is_slow() const { return false; }  // priced last, where still asked for
  virtual bool is_rough() const { return false; }  // seconds are at least so many
  virtual void refine() {}                         // make them exact

  double of(int size, int group) const { return seconds[(size_t)size * groups + group]; }

  // The groups that the atoms of a change are in, once each.
  void touch(const Ints& atoms) {
    if (is_of_kind) kept.keep(excess.sum);
    touched.clear();
    marks.wipe();
    for (int atom : atoms)
      for (const int* g = of_atom.begin(atom); g != of_atom.end(atom); ++g)
        if (marks.mark(*g)) touched.push_back(*g);
    before_move(touched);
    before_atoms(atoms);
  }
  virtual void before_atoms(const Ints&) {}
  void moved() { after_move(touched); }
  virtual void undo() {
    kept.undo();
    changed.clear();
  }
  virtual void keep() {
    if (is_of_kind)
      for (const auto& entry : kept.kept) {
        const auto i = entry.place - entries().data();
        if (i >= 0 && i < (int)above.place.size()) above.set((int)i, *entry.place > excess.target);
      }
    kept.kept.clear();
  }

  virtual const Reals& entries() const { return seconds; }
  double largest() const {
    double most = 0.0;
    for (size_t i = 0; i < number(); ++i) most = std::max(most, entries()[i]);
    return most;
  }
  // Aim at a target; the sum is that of the entries now.
  void aim(double target) {
    excess = {target, 0.0};
    above.clear(number());
    for (size_t i = 0; i < number(); ++i) {
      excess.sum += excess.of(entries()[i]);
      above.set((int)i, entries()[i] > target);
    }
  }
  // An atom that has a part in an entry, as drawn; -1: none is known.
  virtual int part_of(int entry, Random& random) {
    if (!atoms_of.count()) {
      std::vector<Ints> found(groups);
      for (int atom = 0; atom < of_atom.count(); ++atom)
        for (const int* g = of_atom.begin(atom); g != of_atom.end(atom); ++g) found[*g].push_back(atom);
      for (const Ints& some : found) {
        atoms_of.entry.insert(atoms_of.entry.end(), some.begin(), some.end());
        atoms_of.start.push_back((int)atoms_of.entry.size());
      }
    }
    return atoms_of.size(entry) ? atoms_of.begin(entry)[random.below(atoms_of.size(entry))] : -1;
  }

 protected:
  Ints touched;
  Marks marks;
  Reals answer;
  Rows atoms_of;  // of each group, once asked for
  // One size each where entries are groups.
  size_t number() const { return &entries() == &seconds ? (size_t)groups : entries().size(); }
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
      if (is_of_kind && size == 0) excess.sum += excess.of(value) - excess.of(place);
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
