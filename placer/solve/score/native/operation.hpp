// An operation: groups of atoms, all of which run it at once, and what each takes.
#pragma once
#include "cost.hpp"
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
// `touch` before it and `moved` after it tell of the groups that move, `settle` prices what
// changed, and `undo` takes all of it back.
struct Operation {
  const Machine& machine;
  const Layout& layout;
  Rows member;                // atoms of each group
  Rows of_atom;               // groups of each atom
  int groups, sizes;
  Reals seconds;              // [size][group]
  Reals mean;                 // of the members of each group, or as seconds
  double* total = nullptr;    // of those means and of others, which the step keeps
  Ints changed;               // groups whose seconds `settle` changed
  Journal<double> kept;
  // Where the slowest of all entries sets a time: groups, or ports.
  bool is_of_kind = false;
  Excess excess;
  Drawn above;

  Operation(const Cost& cost, Rows members, int groups, int sizes)
      : machine(cost.machine), layout(cost.layout), member(std::move(members)),
        of_atom(member.turned((int)layout.site.size())), groups(groups), sizes(sizes),
        seconds((size_t)groups * sizes, 0.0), mean(groups, 0.0) {
    marks.resize(groups);
  }
  Operation(const Cost& cost, Rows members, int sizes = 1)
      : Operation(cost, members, members.count(), sizes) {}
  virtual ~Operation() = default;
  virtual void rebuild() {
    price_all();
    keep();
    changed.clear();
  }
  virtual void settle() {
    changed.clear();
    price_all();
  }
  virtual void moved() {}
  virtual bool is_slow() const { return false; }   // priced last, where still of use
  virtual bool is_rough() const { return false; }  // seconds are at least so many
  virtual void refine() {}                         // make them exact

  double of(int size, int group) const { return seconds[(size_t)size * groups + group]; }

  Ints touched;                // groups that the atoms of a change are in, once each

  virtual void touch(const Ints& atoms) {
    if (is_of_kind) kept.keep(excess.sum);
    touched.clear();
    marks.wipe();
    for (int atom : atoms)
      for (int g : of_atom[atom])
        if (marks.mark(g)) touched.push_back(g);
  }
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
  // An atom that has a part in an entry, as drawn; -1: none is known, as of what the scorer
  // prices.
  virtual int part_of(int entry, Random& random) {
    return entry >= member.count() || !member[entry].size() ? -1 : member[entry].any(random);
  }

 protected:
  Marks marks;
  virtual void price_all() = 0;
  // One size each where entries are groups.
  size_t number() const { return &entries() == &seconds ? (size_t)groups : entries().size(); }
  void set(int group, int size, double value, double average) {
    double& place = seconds[(size_t)size * groups + group];
    if (place != value) {
      if (is_of_kind && size == 0) excess.sum += excess.of(value) - excess.of(place);
      kept.set(place, value);
      if (changed.empty() || changed.back() != group) changed.push_back(group);
    }
    if (size > 0 || mean[group] == average) return;
    if (total) *total += average - mean[group];
    kept.set(mean[group], average);
  }
};

// All groups are priced anew after each change.
struct PricedAnew : Operation {
  using Operation::Operation;
  bool is_slow() const override { return true; }
  void touch(const Ints&) override {
    if (is_of_kind) kept.keep(excess.sum);
  }
};

// What the scorer says of all groups, each time.
struct ByScorer : PricedAnew {
  nb::object scorer;

  ByScorer(const Cost& cost, const Given& of)
      : PricedAnew(cost, Rows{}, of.number("groups"), of.number("sizes")), scorer(of.of("scorer")) {}

 private:
  void price_all() override {
    nb::gil_scoped_acquire gil;
    const Reals found = numbers<double>(scorer(array(layout.slot_of)));
    for (int g = 0; g < groups; ++g)
      for (int s = 0; s < sizes; ++s) set(g, s, found[(size_t)s * groups + g], found[g]);
  }
};

// Groups inside one atom each take what the scorer said of its site.
struct Inside : Operation {
  Reals on_site;

  Inside(const Cost& cost, const Given& of) : Operation(cost, of.rows("member")), on_site(of.reals("on_site")) {}
  void settle() override {
    changed.clear();
    for (int g : touched) price(g);
  }

 private:
  void price_all() override {
    for (int g = 0; g < groups; ++g) price(g);
  }
  void price(int g) {
    const double seconds = on_site[layout.site_of(member[g][0])];
    set(g, 0, seconds, seconds);
  }
};

// Groups whose loads on uplinks add up.
struct OnUplinks : Operation {
  Ints lanes;                 // groups alike that are kept once
  bool adds_up = true;        // uplinks make somebody wait

  OnUplinks(const Cost& cost, const Given& of, int sizes)
      : Operation(cost, of.rows("member"), sizes), lanes(of.ints("lanes")), load(2 * machine.uplinks(), 0.0), harmless(load) {
    loads_seen.resize(load.size());
  }
  void touch(const Ints& atoms) override {
    Operation::touch(atoms);
    if (!adds_up) return;
    loads_seen.wipe();
    loads.clear();
    for (int g : touched) add_load(g, -1.0);
  }
  void moved() override {
    for (int g : touched)
      if (adds_up) add_load(g, 1.0);
  }
  void settle() override {
    changed.clear();
    for (int g : touched) price(g);
    for (const auto& [uplink, was] : loads) {
      const double now = load[uplink];
      if (now == was || std::max(now, was) <= harmless[uplink]) continue;
      const int below = uplink % machine.uplinks(), end = layout.end[below];
      for (int slot = layout.first[below]; slot < end; ++slot) {
        const int atom = layout.atom_at[slot];
        if (atom < 0) continue;
        for (int g : of_atom[atom])
          if (marks.mark(g)) price(g);
      }
    }
  }

 protected:
  Reals load;                 // of each uplink
  Reals harmless;             // those that make nobody slower

  void add(int uplink, double by) {
    if (loads_seen.mark(uplink)) {
      loads.push_back({uplink, load[uplink]});
      kept.keep(load[uplink]);
    }
    load[uplink] += by;
  }

 private:
  std::vector<std::pair<int, double>> loads;  // before the change
  Marks loads_seen;

  void price_all() override {
    std::fill(load.begin(), load.end(), 0.0);
    for (int g = 0; adds_up && g < groups; ++g) add_load(g, 1.0);
    for (int g = 0; g < groups; ++g) price(g);
  }
  virtual void add_load(int group, double sign) = 0;
  virtual void price(int group) = 0;
};

}  // namespace placer
