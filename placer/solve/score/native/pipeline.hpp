// The longest path through a replica's pipeline: placer.cost.schedule.
#pragma once
#include <cmath>
#include "given.hpp"

namespace placer {

struct Step { int stage, work, source, key, link; };

struct Pipeline {
  int stages = 0, group = 0;
  int repetitions = 0;          // of the block before `tail`, done once in `head`
  bool overlap = false;
  std::vector<Step> head, middle, tail;
  Ints open;                    // keys of results that nobody used before the middle
  Reals arrived, clock, free, last, moved;

  void set(const Given& of) {
    stages = of.number("stages");
    group = of.number("group");
    repetitions = of.number("repetitions");
    overlap = of.flag("overlap");
    head = steps(of.ints("head"));
    middle = steps(of.ints("middle"));
    tail = steps(of.ints("tail"));
    open = of.ints("open");
    moved.assign(open.size(), 0.0);
    arrived.assign(of.number("keys"), 0.0);
  }

  // work: 2 p + 4 entries, hop: p.
  double seconds(const double* work, const double* hop) {
    clock.assign(stages, 0.0);
    free.assign(2 * stages, 0.0);
    run(head, work, hop);
    for (int r = 0; r < repetitions; ++r) {
      const bool may_skip = r + 2 < repetitions;
      if (may_skip) remember();
      for (size_t i = 0; i < open.size(); ++i) moved[i] = arrived[open[i]];
      for (size_t i = 0; i < open.size(); ++i) arrived[open[i] - group] = moved[i];
      run(middle, work, hop);
      double by;
      if (may_skip && is_shifted(by)) {
        shift(by * (repetitions - 1 - r));
        break;
      }
    }
    run(tail, work, hop);
    return clock[0];
  }

 private:
  static std::vector<Step> steps(const Ints& s) {
    std::vector<Step> found;
    for (size_t i = 0; i + 4 < s.size(); i += 5) found.push_back({s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4]});
    return found;
  }
  void run(const std::vector<Step>& steps, const double* work, const double* hop) {
    for (const Step& s : steps) {
      double end = clock[s.stage];
      if (s.source >= 0) end = std::max(end, arrived[s.source]);
      end += work[s.work];
      clock[s.stage] = end;
      if (s.link >= 0) {
        end = std::max(end, free[s.link]) + hop[s.link < stages ? s.link : s.link - stages];
        if (overlap) free[s.link] = end;
        else clock[s.stage] = end;
      }
      if (s.key >= 0) arrived[s.key] = end;
    }
  }
  void remember() {
    last = clock;
    last.insert(last.end(), free.begin(), free.end());
    for (int key : open) last.push_back(arrived[key]);
  }
  // Whether a repetition moved everything that the future depends on by as much.
  bool is_shifted(double& by) {
    by = clock[0] - last[0];
    const double least = by - 1e-14 * clock[0], most = by + 1e-14 * clock[0];
    auto differs = [&](double now, double before) {
      return !(now == 0.0 && before == 0.0) && (now - before < least || now - before > most);
    };
    size_t i = 0;
    for (double value : clock) if (differs(value, last[i++])) return false;
    for (double value : free) if (differs(value, last[i++])) return false;
    for (int key : open) if (differs(arrived[key], last[i++])) return false;
    return true;
  }
  void shift(double by) {
    for (double& value : clock) value += by;
    for (double& value : free) if (value != 0.0) value += by;
    for (int key : open) arrived[key] += by;
  }
};

}  // namespace placer
