// The machine as the step sees it, and which atom is on which slot.
//
// An atom is some ranks that move as one, a slot room for one atom. Slots that nothing
// tells apart are on one site: same domains, rail and speed. Tiers count from the
// innermost that matters; a child of tier t is a domain of the tier below it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>
#include "random.hpp"

namespace placer {

using Ints = std::vector<int>;
using Reals = std::vector<double>;
using Pairs = std::vector<std::pair<int, int>>;  // of slots that swap what they hold

struct Machine {
  int tiers = 0;
  int scale_up = -1;            // the tier of NVLink, -1: none
  Ints child_of;                // [site][t]
  Reals bandwidth, latency, detour;
  // Uplinks of every child of every tier: the ways up, then the ways down.
  Reals capacity;               // B/s
  Reals shared;                 // for those who share it, endless where nobody has to
  Ints outer, thin;             // tiers outside the scale-up domain; those where somebody has to
  Ints rail;                    // of a site
  Reals factor, speed;
  int rails = 1;
  bool has_rails = false;
  Ints first_uplink{0};         // of a tier, in lists of all that go up

  int first_outer() const { return scale_up + 1; }
  int uplinks() const { return first_uplink.back(); }
  int children(int t) const { return first_uplink[t + 1] - first_uplink[t]; }
  int child(int t, int site) const { return child_of[(size_t)site * tiers + t]; }
  int uplink(int t, int site) const { return first_uplink[t] + child(t, site); }
  // Uplinks at some tiers that a message between sites takes, whose paths meet at a tier.
  template <class Use> void on_way(const Ints& tiers, int from, int to, int meet, const Use& use) const {
    for (int t : tiers) {
      if (t > meet) return;
      use(uplink(t, from));
      use(uplinks() + uplink(t, to));
    }
  }
  int tier(int a, int b) const {
    int t = 0;
    while (t + 1 < tiers && child(t + 1, a) != child(t + 1, b)) ++t;
    return t;
  }
  int scale_up_domain(int site) const {
    return scale_up + 1 < tiers ? child(scale_up + 1, site) : 0;
  }
};

struct Layout {
  Ints site;                    // of a slot
  Ints slot_of, atom_at;        // atom_at: -1 where nobody is
  // Slots follow the tree: those below uplink u are first[u] .. end[u].
  Ints first, end;

  Pairs made;                   // of slots, by the last change

  int site_of(int atom) const { return site_at[atom]; }
  void exchange(int one, int other) {
    std::swap(atom_at[one], atom_at[other]);
    for (int slot : {one, other})
      if (const int atom = atom_at[slot]; atom >= 0) slot_of[atom] = slot, site_at[atom] = site[slot];
  }
  void change(const Pairs& pairs) {
    made = pairs;
    for (const auto& [one, other] : made) exchange(one, other);
  }
  void undo() {
    for (size_t i = made.size(); i-- > 0;) exchange(made[i].first, made[i].second);
  }
  void load(const Ints& slots) {
    slot_of = slots;
    std::fill(atom_at.begin(), atom_at.end(), -1);
    site_at.resize(slots.size());
    for (size_t atom = 0; atom < slots.size(); ++atom) {
      atom_at[slots[atom]] = (int)atom;
      site_at[atom] = site[slots[atom]];
    }
  }

 private:
  Ints site_at;                 // of an atom
};

// Rows of entries, one after the other.
struct Rows {
  struct Row {
    const int *first, *last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
    int size() const { return (int)(last - first); }
    int operator[](int i) const { return first[i]; }
    int any(Random& random) const { return first[random.below(size())]; }
  };
  Ints start{0}, entry;
  int count() const { return (int)start.size() - 1; }
  Row operator[](int row) const { return {entry.data() + start[row], entry.data() + start[row + 1]}; }

  // The rows that each of so many entries is in, once each.
  Rows turned(int entries) const {
    Rows found;
    found.start.assign(entries + 1, 0);
    Ints last(entries, -1), next;
    const auto each = [&](const auto& use) {
      std::fill(last.begin(), last.end(), -1);
      for (int row = 0; row < count(); ++row)
        for (int e : (*this)[row])
          if (last[e] != row) last[e] = row, use(e, row);
    };
    each([&](int e, int) { ++found.start[e + 1]; });
    for (int e = 0; e < entries; ++e) found.start[e + 1] += found.start[e];
    next.assign(found.start.begin(), found.start.end() - 1);
    found.entry.resize(found.start.back());
    each([&](int e, int row) { found.entry[next[e]++] = row; });
    return found;
  }
};

// Marks that are wiped all at once.
struct Marks {
  std::vector<int64_t> at;
  int64_t now = 0;
  void resize(size_t count) { at.assign(count, 0); }
  void wipe() { ++now; }
  bool mark(int i) { return at[i] != now && (at[i] = now, true); }
  bool has(int i) const { return at[i] == now; }
};

// Values that were overwritten, to be put back.
template <class T> struct Journal {
  struct Entry { T* place; T value; };
  std::vector<Entry> kept;
  void keep(T& place) { kept.push_back({&place, place}); }
  void set(T& place, T value) { keep(place); place = value; }
  void undo() {
    for (size_t i = kept.size(); i-- > 0;) *kept[i].place = kept[i].value;
    kept.clear();
  }
};

}  // namespace placer
