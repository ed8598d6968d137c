// Rules about places, which are slots, or nodes where runs walk: units that may be on some of
// them only, sets of units that stay together, and at most so many tokens in a box: replicas
// in a rack, nodes in use, ranks within a budget.
#pragma once
#include "../../score/native/given.hpp"

namespace placer {

struct Seat { int unit, place; };
using Seats = std::vector<Seat>;

// Sets of units along one axis or more: every unit is in one of them.
struct Family {
  Ints of_unit;
  Rows units;

  explicit Family(Rows sets) : of_unit(sets.entry.size()), units(std::move(sets)) {
    for (int set = 0; set < units.count(); ++set)
      for (const int* u = units.begin(set); u != units.end(set); ++u) of_unit[*u] = set;
  }
};

// Units of each set must lie in one domain.
struct Tie {
  Family sets;
  Ints domain;                  // of each place

  bool holds(int set, const Ints& place) const {
    const Rows& units = sets.units;
    const int first = domain[place[*units.begin(set)]];
    return std::all_of(units.begin(set), units.end(set), [&](int unit) { return domain[place[unit]] == first; });
  }
};

struct Limit {
  int columns, width;           // tokens of a box
  Ints of_unit, of_place;       // of each column: added up, box * width + token; -1: none
  Ints most;                    // of each box
  Ints count, tokens;           // of each token; tokens of each box that occur

  int at(const Seat& seat, int column) const {
    const int unit = of_unit[seat.unit * columns + column], place = of_place[seat.place * columns + column];
    return unit < 0 || place < 0 ? -1 : unit + place;
  }
  void clear() {
    count.assign(most.size() * width, 0);
    tokens.assign(most.size(), 0);
  }
  void add(const Seat& seat) {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0) tokens[i / width] += count[i]++ == 0;
  }
  void take(const Seat& seat) {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0) tokens[i / width] -= --count[i] == 0;
  }
  bool holds(const Seat& seat) const {
    for (int k = 0; k < columns; ++k)
      if (const int i = at(seat, k); i >= 0 && tokens[i / width] > most[i / width]) return false;
    return true;
  }
};

struct Fence {
  std::vector<Tie> ties;
  std::vector<Limit> limits;
  Ints pin_of_unit;             // -1: it may be anywhere
  std::vector<char> open;       // places of each pin
  int places = 0;
  Ints place;                   // of each unit

  void set_pins(const Given& of) {
    pin_of_unit = of.ints("pin_of_unit");
    for (const int is_open : of.ints("open")) open.push_back(is_open);
    places = of.number("places");
  }
  void add_tie(const Given& of) { ties.push_back({Family(of.rows("sets")), of.ints("domain")}); }
  void add_limit(const Given& of) {
    limits.push_back({of.number("columns"), of.number("width"), of.ints("of_unit"), of.ints("of_place"),
                      of.ints("most"), {}, {}});
  }
  bool is_any() const { return !ties.empty() || !limits.empty() || !pin_of_unit.empty(); }
  // Whether rules hold with units on these places and nowhere else.
  bool load(const Seats& seats) {
    for (Limit& limit : limits) limit.clear();
    place.resize(seats.size());
    move({}, seats);
    for (const Tie& tie : ties)
      for (int set = 0; set < tie.sets.units.count(); ++set)
        if (!tie.holds(set, place)) return false;
    return has_room(seats);
  }
  bool allows(const Seats& left, const Seats& taken) {
    if (!is_any()) return true;
    move(left, taken);
    bool fine = has_room(taken);
    for (const Tie& tie : ties)
      for (const Seat& seat : taken) fine = fine && tie.holds(tie.sets.of_unit[seat.unit], place);
    move(taken, left);
    return fine;
  }
  void move(const Seats& left, const Seats& taken) {
    for (const Seat& seat : taken) place[seat.unit] = seat.place;
    for (Limit& limit : limits) {
      for (const Seat& seat : left) limit.take(seat);
      for (const Seat& seat : taken) limit.add(seat);
    }
  }

 private:
  // Whether units may be where they came to, and are not too many there.
  bool has_room(const Seats& seats) const {
    for (const Seat& seat : seats)
      if (!pin_of_unit.empty() && pin_of_unit[seat.unit] >= 0 &&
          !open[(size_t)pin_of_unit[seat.unit] * places + seat.place])
        return false;
    for (const Limit& limit : limits)
      for (const Seat& seat : seats)
        if (!limit.holds(seat)) return false;
    return true;
  }
};

}  // namespace placer
