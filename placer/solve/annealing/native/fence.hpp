// Rules about places, which are slots, or nodes where runs walk: units that may be on some of
// them only, sets of units that stay together, and at most so many tokens in a box: replicas
// in a rack, nodes in use, ranks within a budget. How much is broken is a sum: tiers between
// pinned units and their homes, sets that are torn, tokens that are too many.
#pragma once
#include "../../score/native/given.hpp"
#include "../../score/native/random.hpp"

namespace placer {

struct Seat { int unit, place; };
using Seats = std::vector<Seat>;

// Sets of units along one axis or more: every unit is in one of them.
struct Family {
  Ints of_unit;
  Rows units;

  explicit Family(Rows sets) : of_unit(sets.entry.size()), units(std::move(sets)) {
    for (int set = 0; set < units.count(); ++set)
      for (int u : units[set]) of_unit[u] = set;
  }
};

// Units of each set must lie in one domain.
struct Tie {
  Family sets;
  Ints domain;                  // of each place

  bool holds(int set, const Ints& place) const {
    const Rows::Row units = sets.units[set];
    const int first = domain[place[units[0]]];
    return std::all_of(units.begin(), units.end(), [&](int unit) { return domain[place[unit]] == first; });
  }
};

struct Limit {
  int columns, width;           // tokens of a box
  Ints of_unit, of_place;       // of each column: added up, box * width + token; -1: none
  Ints most;                    // of each box
  Ints count, tokens;           // of each token; tokens of each box that occur
  int excess = 0;               // of tokens, in all boxes

  int at(const Seat& seat, int column) const {
    const int unit = of_unit[seat.unit * columns + column], place = of_place[seat.place * columns + column];
    return unit < 0 || place < 0 ? -1 : unit + place;
  }
  void clear() {
    count.assign(most.size() * width, 0);
    tokens.assign(most.size(), 0);
    excess = 0;
  }
  void add(const Seat& seat) {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0 && count[i]++ == 0) excess += ++tokens[i / width] > most[i / width];
  }
  void take(const Seat& seat) {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0 && --count[i] == 0) excess -= tokens[i / width]-- > most[i / width];
  }
  bool is_full(const Seat& seat) const {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0 && tokens[i / width] > most[i / width]) return true;
    return false;
  }
};

struct Fence {
  static constexpr int RARELY = 16;  // one change out of so many

  std::vector<Tie> ties;
  std::vector<Limit> limits;
  Ints pin_of_unit;             // -1: it may be anywhere
  Ints away;                    // of each pin and place: tiers between it and the nearest home, summed over ranks
  Ints pinned;                  // units
  Rows homes;                   // places of each pin
  int places = 0;
  Ints place;                   // of each unit
  std::vector<std::vector<char>> torn;  // sets of each tie
  int broken = 0;               // how much

  void set_pins(const Given& of) {
    pin_of_unit = of.ints("pin_of_unit");
    away = of.ints("away");
    places = of.number("places");
    homes = of.rows("homes");
    for (size_t unit = 0; unit < pin_of_unit.size(); ++unit)
      if (pin_of_unit[unit] >= 0) pinned.push_back((int)unit);
  }
  void add_tie(const Given& of) {
    ties.push_back({Family(of.rows("sets")), of.ints("domain")});
    torn.emplace_back(ties.back().sets.units.count());
  }
  void add_limit(const Given& of) {
    limits.push_back({of.number("columns"), of.number("width"), of.ints("of_unit"), of.ints("of_place"),
                      of.ints("most"), {}, {}});
  }
  bool is_any() const { return !ties.empty() || !limits.empty() || !pin_of_unit.empty(); }
  // Units are on these places and nowhere else.
  void load(const Seats& seats) {
    for (Limit& limit : limits) limit.clear();
    for (auto& sets : torn) std::fill(sets.begin(), sets.end(), 0);
    broken = 0;
    place.resize(seats.size());
    for (const Seat& seat : seats) place[seat.unit] = seat.place;
    move({}, seats);
  }
  // How much is broken after a change.
  int broken_after(const Seats& left, const Seats& taken) {
    move(left, taken);
    const int found = broken;
    move(taken, left);
    return found;
  }
  // Whether a change breaks no more than is broken.
  bool allows(const Seats& left, const Seats& taken) {
    return !is_any() || broken_after(left, taken) <= broken;
  }
  void move(const Seats& left, const Seats& taken) {
    for (const Seat& seat : taken) place[seat.unit] = seat.place;
    for (const Seat& seat : left) broken -= from_home(seat);
    for (const Seat& seat : taken) broken += from_home(seat);
    for (Limit& limit : limits) {
      broken -= limit.excess;
      for (const Seat& seat : left) limit.take(seat);
      for (const Seat& seat : taken) limit.add(seat);
      broken += limit.excess;
    }
    for (size_t t = 0; t < ties.size(); ++t)
      for (const Seat& seat : taken) {
        const int set = ties[t].sets.of_unit[seat.unit];
        const char is_torn = !ties[t].holds(set, place);
        broken += is_torn - torn[t][set];
        torn[t][set] = is_torn;
      }
  }
  bool is_broken_by(int unit) const {
    const Seat seat{unit, place[unit]};
    if (from_home(seat)) return true;
    for (const Limit& limit : limits)
      if (limit.is_full(seat)) return true;
    for (size_t t = 0; t < ties.size(); ++t)
      if (torn[t][ties[t].sets.of_unit[unit]]) return true;
    return false;
  }
  // A unit by which rules are broken, -1 if none was found.
  int any_broken(Random& random) const {
    for (int i = 0; broken && i < 32; ++i) {
      const bool of_pins = !pinned.empty() && i % 2;
      const int unit = of_pins ? pinned[random.below((int)pinned.size())] : random.below((int)place.size());
      if (is_broken_by(unit)) return unit;
    }
    return -1;
  }
  // A place that is open to a unit, -1 where it has no pin.
  int home_of(int unit, Random& random) const {
    const int pin = pin_of_unit.empty() ? -1 : pin_of_unit[unit];
    return pin < 0 || !homes[pin].size() ? -1 : homes[pin].any(random);
  }

 private:
  int from_home(const Seat& seat) const {
    const int pin = pin_of_unit.empty() ? -1 : pin_of_unit[seat.unit];
    return pin < 0 ? 0 : away[(size_t)pin * places + seat.place];
  }
};

}  // namespace placer
