// Runs on nodes: a launch by nodes gives each node consecutive ranks, in the order of nodes.
//
// A change replaces some stretches of nodes by others that hold as many units; `seat` says
// which slots then exchange what they hold. Slots that nothing tells apart are of one kind.
#pragma once
#include "../../score/native/given.hpp"
#include "fence.hpp"

namespace placer {

struct Run { int node, length; };

// Places first .. end of the order, and what stands there instead.
struct Stretch {
  int first, end;
  std::vector<Run> runs;
};

struct Runs {
  std::vector<Run> order;       // nodes that hold any, in the order of their units
  Ints begin;                   // first unit of each place, and the end
  Ints place;                   // of each node, -1: it holds none
  Ints idle, idle_at;           // nodes that hold none, and where each is among them
  Ints room, host;              // of each node
  Ints first, kind;             // kind of the slot of unit i of a node: kind[first[node] + i]
  Ints kind_of_slot, node_of_slot;
  Rows slots_of_kind;
  Ints sizes;                   // units of groups of consecutive ranks
  bool has_hosts = false;       // some host has several nodes
  std::vector<Stretch> change;  // the one that is proposed

  void set(const Given& of) {
    room = of.ints("room");
    host = of.ints("host");
    kind = of.ints("kind");
    kind_of_slot = of.ints("kind_of_slot");
    node_of_slot = of.ints("node_of_slot");
    slots_of_kind = of.rows("slots_of_kind");
    sizes = of.ints("sizes");
    for (int node = 0, at = 0; node < nodes(); at += room[node++]) first.push_back(at);
    for (int node = 0; node + 1 < nodes(); ++node) has_hosts |= host[node] == host[node + 1];
  }

  int places() const { return (int)order.size(); }
  int nodes() const { return (int)room.size(); }
  int spare(int at) const { return room[order[at].node] - order[at].length; }
  int place_of(int unit) const {
    return (int)(std::upper_bound(begin.begin(), begin.end(), unit) - begin.begin()) - 1;
  }
  void replace(int from, int end, std::vector<Run> runs) { change.push_back({from, end, std::move(runs)}); }
  std::vector<Run> between(int from, int end) const {
    return {order.begin() + from, order.begin() + end};
  }

  void load(std::vector<Run> runs) {
    order = std::move(runs);
    place.assign(nodes(), -1);
    idle.clear();
    idle_at.assign(nodes(), -1);
    note_from(0);
    for (int node = 0; node < nodes(); ++node)
      if (place[node] < 0) rest(node);
    node_of.resize(begin.back());
    after.resize(begin.back());
    for (int at = 0; at < places(); ++at)
      std::fill(node_of.begin() + begin[at], node_of.begin() + begin[at + 1], order[at].node);
    target.assign(begin.back(), -1);
    units_seen.resize(begin.back());
    visited.resize(begin.back());
    nodes_seen.resize(nodes());
    kinds_seen.resize(slots_of_kind.count());
    freed.resize(slots_of_kind.count());
    next.resize(slots_of_kind.count());
    change.clear();
  }
  // Slot of each unit as the order says.
  Ints slots() {
    Ints found(begin.back()), used(slots_of_kind.count(), 0);
    for (int at = 0; at < places(); ++at)
      for (int i = 0; i < order[at].length; ++i) {
        const int sort = kind[first[order[at].node] + i];
        found[begin[at] + i] = slots_of_kind[sort][used[sort]++];
      }
    return found;
  }

  // Whether the change is legal; the slots that exchange what they hold, one pair after the
  // other. `at` says where units are, and who is on a slot.
  template <class Search> bool seat(const Search& at, Pairs& pairs) {
    int places = 0;
    for (const Stretch& stretch : change) places += stretch.end - stretch.first;
    if (change.empty() || places > at.FAR || !is_legal()) return false;
    moving.clear();
    units_seen.wipe();
    kinds_seen.wipe();
    for (const Stretch& stretch : change) {
      int unit = begin[stretch.first];
      for (const Run& run : stretch.runs)
        for (int i = 0; i < run.length; ++i, ++unit) {
          if (run.node != node_of[unit]) units_seen.mark(unit), after[unit] = run.node;
          const int sort = kind[first[run.node] + i], slot = at.slot_of(unit);
          if (sort == kind_of_slot[slot]) continue;
          moving.push_back(unit);
          target[unit] = sort;
          for (int each : {sort, kind_of_slot[slot]})
            if (kinds_seen.mark(each)) freed[each].clear(), next[each] = 0;
          freed[kind_of_slot[slot]].push_back(slot);
        }
    }
    exchange(at, pairs);
    return true;
  }

  int node_with(int unit) const { return node_of[unit]; }
  // Units that leave their nodes in the change, and where they go.
  void moved(Seats& left, Seats& taken) const {
    left.clear();
    taken.clear();
    for (const Stretch& stretch : change)
      for (int unit = begin[stretch.first]; unit < begin[stretch.end]; ++unit) {
        if (!units_seen.has(unit)) continue;
        left.push_back({unit, node_of[unit]});
        taken.push_back({unit, after[unit]});
      }
  }

  void keep() {
    for (const Stretch& stretch : change)
      for (int at = stretch.first; at < stretch.end; ++at) rest(order[at].node);
    for (size_t i = change.size(); i-- > 0;) {
      Stretch& stretch = change[i];
      int unit = begin[stretch.first];
      for (const Run& run : stretch.runs)
        for (int k = 0; k < run.length; ++k) node_of[unit++] = run.node;
      const size_t count = stretch.runs.size(), before = stretch.end - stretch.first;
      if (count > before) order.insert(order.begin() + stretch.end, count - before, Run{});
      if (count < before) order.erase(order.begin() + stretch.first + count, order.begin() + stretch.end);
      std::copy(stretch.runs.begin(), stretch.runs.end(), order.begin() + stretch.first);
      for (const Run& run : stretch.runs) wake(run.node);
    }
    note_from(change.front().first);
    change.clear();
  }

 private:
  Ints node_of, target, moving, after;
  Marks units_seen, visited, nodes_seen, kinds_seen;
  std::vector<Ints> freed;
  Ints next;                    // where the search for free slots of a kind goes on

  void rest(int node) {
    place[node] = -1;
    idle_at[node] = (int)idle.size();
    idle.push_back(node);
  }
  void wake(int node) {
    const int at = idle_at[node];
    idle_at[idle.back()] = at;
    idle[at] = idle.back();
    idle.pop_back();
    idle_at[node] = -1;
  }
  void note_from(int from) {
    begin.resize(order.size() + 1);
    begin[0] = 0;
    for (int at = from; at < places(); ++at) {
      begin[at + 1] = begin[at] + order[at].length;
      place[order[at].node] = at;
    }
  }
  // Stretches hold as many units as before, on nodes of their own or idle ones, with room.
  bool is_legal() {
    nodes_seen.wipe();
    std::sort(change.begin(), change.end(), [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
    int last = 0;
    for (Stretch& stretch : change) {
      if (stretch.first < last) return false;
      last = stretch.end;
      auto& runs = stretch.runs;
      runs.erase(std::remove_if(runs.begin(), runs.end(), [](const Run& run) { return run.length == 0; }), runs.end());
      int total = 0;
      for (const Run& run : runs) {
        if (run.length < 0 || run.length > room[run.node] || !nodes_seen.mark(run.node)) return false;
        total += run.length;
      }
      if (total != begin[stretch.end] - begin[stretch.first]) return false;
    }
    for (const Stretch& stretch : change)
      for (const Run& run : stretch.runs) {
        const int at = place[run.node];
        bool is_free = at < 0;
        for (const Stretch& other : change) is_free |= at >= other.first && at < other.end;
        if (!is_free) return false;
      }
    return !has_hosts || keeps_hosts();
  }
  // Nodes of a host follow each other, and ascend.
  bool keeps_hosts() {
    nodes_seen.wipe();  // hosts are not more than nodes
    int before = -1;
    const auto passes = [&](const Run& run) {
      const bool same = before >= 0 && host[before] == host[run.node];
      const bool fine = same ? before < run.node : nodes_seen.mark(host[run.node]);
      before = run.node;
      return fine;
    };
    int at = 0;
    for (const Stretch& stretch : change) {
      for (; at < stretch.first; ++at)
        if (!passes(order[at])) return false;
      for (const Run& run : stretch.runs)
        if (!passes(run)) return false;
      at = stretch.end;
    }
    for (; at < places(); ++at)
      if (!passes(order[at])) return false;
    return true;
  }
  // Units go where others leave, then to free slots; a row of such steps is turned by pairs
  // with the first slot.
  template <class Search> void exchange(const Search& at, Pairs& pairs) {
    visited.wipe();
    const auto taken = [&](int sort) {
      if (!freed[sort].empty()) {
        const int slot = freed[sort].back();
        freed[sort].pop_back();
        return slot;
      }
      const Rows::Row slots = slots_of_kind[sort];
      while (at.unit_at(slots[next[sort]]) >= 0) ++next[sort];
      return slots[next[sort]++];
    };
    for (int unit : moving) {
      if (visited.has(unit)) continue;
      // Whoever a slot was freed by may have been seated before.
      const int origin = at.slot_of(unit);
      int now = unit;
      while (now >= 0 && visited.mark(now)) {
        const int slot = taken(target[now]);
        if (slot != origin) pairs.push_back({origin, slot});
        now = slot == origin ? -1 : at.unit_at(slot);
      }
    }
  }
};

}  // namespace placer
