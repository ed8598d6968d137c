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

namespace placer {

using Ints = std::vector<int>;
using Reals = std::vector<double>;
using Pairs = std::vector<std::pair<int, int>>;  // of slots that swap what they hold

struct Machine {
  int tiers = 0;
  int scale_up = -1;            // the tier of NVLink, -1: none
  std::vector<Ints> child;      // [t][site]
  Reals bandwidth, latency, detour;
  std::vector<Reals> capacity;  // [t][child], B/s
  Ints rail;                    // of a site
  Reals factor, speed;
  int rails = 1;
  bool has_rails = false;

  int first_outer() const { return scale_up + 1; }
  int tier(int a, int b) const {
    int t = 0;
    while (t + 1 < tiers && child[t + 1][a] != child[t + 1][b]) ++t;
    return t;
  }
  int scale_up_domain(int site) const {
    return scale_up + 1 < tiers ? child[scale_up + 1][site] : 0;
  }
};

struct Layout {
  Ints site;                    // of a slot
  Ints slot_of, atom_at;        // atom_at: -1 where nobody is
  // Slots follow the tree: those of child d of tier t are first[t][d] .. end[t][d].
  std::vector<Ints> first, end;

  int site_of(int atom) const { return site[slot_of[atom]]; }
  void exchange(int one, int other) {
    std::swap(atom_at[one], atom_at[other]);
    if (atom_at[one] >= 0) slot_of[atom_at[one]] = one;
    if (atom_at[other] >= 0) slot_of[atom_at[other]] = other;
  }
  void load(const Ints& slots) {
    slot_of = slots;
    std::fill(atom_at.begin(), atom_at.end(), -1);
    for (size_t atom = 0; atom < slots.size(); ++atom) atom_at[slots[atom]] = (int)atom;
  }
};

// Rows of entries, one after the other.
struct Rows {
  Ints start{0}, entry;
  int count() const { return (int)start.size() - 1; }
  const int* begin(int row) const { return entry.data() + start[row]; }
  const int* end(int row) const { return entry.data() + start[row + 1]; }
  int size(int row) const { return start[row + 1] - start[row]; }
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
