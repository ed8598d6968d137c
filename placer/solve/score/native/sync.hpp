// Gradients and parameters that no compute hides: placer.cost.data_parallel, of seconds that
// are sums of peaks. A peak is the slowest group of an operation on a stage.
#pragma once
#include <numeric>
#include "given.hpp"

namespace placer {

struct Sync {
  struct Part {
    int operation, size;
    Rows groups;                  // of each stage
    Reals reduce, again, gather;  // [stage, chunk] for a second of the peak, empty: none
    double first_bucket, embedding;
  };
  struct Pass { bool overlaps; double chunk_s, window_s; };
  std::vector<Part> parts;
  int stages = 0, chunks = 0;
  Pass backward{}, forward{};     // behind which gradients and parameters hide
  double buckets = 1, share = 0, every = 1, others = 0;
  bool reduces_each = false, gathers_each = false;

  void set(const Given& of) {
    stages = of.number("stages");
    chunks = of.number("chunks");
    backward = {of.flag("overlap_reduce"), of.real("backward_s"), of.real("backward_window_s")};
    forward = {of.flag("overlap_gather"), of.real("forward_s"), of.real("forward_window_s")};
    buckets = of.real("buckets");
    share = of.real("share");
    every = of.real("every");
    others = of.real("others");
    reduces_each = of.flag("reduces_each");
    gathers_each = of.flag("gathers_each");
  }
  void add(int operation, int size, const Given& of) {
    parts.push_back({operation, size, of.rows("groups"), of.reals("reduce"), of.reals("again"), of.reals("gather"),
                     of.real("first_bucket"), of.real("embedding")});
    Part& part = parts.back();
    for (Reals* each : {&part.reduce, &part.again, &part.gather})
      if (std::count(each->begin(), each->end(), 0.0) == (int)each->size()) each->clear();
  }
  // Given the peak of each part and stage.
  double exposed(const Reals& peak) {
    if (parts.empty()) return 0.0;
    double bucket = 0.0, embedding = 0.0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double* own = peak.data() + i * stages;
      bucket += parts[i].first_bucket * own[0];
      embedding += parts[i].embedding * *std::max_element(own, own + stages);
    }
    add_up(peak);
    double sum = once(reduce, backward, 0.0);
    if (reduces_each) sum += others * between(again, backward);
    sum += once(gather, forward, bucket);
    if (gathers_each) sum += others * between(gather, forward);
    return sum / every + embedding;
  }

 private:
  struct Sums {
    Reals Part::*of;
    Reals seconds;                // [stage, chunk]
    Reals total;                  // [stage]
  };
  Sums reduce{&Part::reduce, {}, {}}, again{&Part::again, {}, {}}, gather{&Part::gather, {}, {}};
  Reals seen;                     // peaks that have been added up
  Reals most;                     // [chunk]

  // Of stages whose peaks are not what they were last time.
  void add_up(const Reals& peak) {
    if (seen.empty()) {
      seen.assign(peak.size(), -1.0);
      for (Sums* sums : {&reduce, &again, &gather})
        sums->seconds.resize((size_t)stages * chunks), sums->total.resize(stages);
    }
    for (int p = 0; p < stages; ++p) {
      bool differs = false;
      for (size_t k = p; k < peak.size(); k += stages) differs |= seen[k] != peak[k];
      if (!differs) continue;
      for (Sums* sums : {&reduce, &again, &gather}) {
        double* row = &sums->seconds[(size_t)p * chunks];
        std::fill_n(row, chunks, 0.0);
        for (size_t i = 0; i < parts.size(); ++i) {
          const Reals& each = parts[i].*sums->of;
          if (each.empty()) continue;
          const double own = peak[i * stages + p], *a_second = &each[(size_t)p * chunks];
          for (int v = 0; v < chunks; ++v) row[v] += a_second[v] * own;
        }
        sums->total[p] = std::accumulate(row, row + chunks, 0.0);
      }
    }
    seen = peak;
  }
  double total(const Sums& sums) const { return std::max(0.0, *std::max_element(sums.total.begin(), sums.total.end())); }
  // What is hidden takes multiprocessors from the work.
  double with_share(const Sums& sums, double seen) const {
    return share ? seen + share * std::max(0.0, total(sums) - seen) : seen;
  }
  double beyond(const Sums& sums, const Pass& pass, int first) {
    most.assign(chunks, 0.0);
    for (int p = 0; p < stages; ++p)
      for (int v = first; v < chunks; ++v) most[v] = std::max(most[v], sums.seconds[p * chunks + v]);
    double sum = 0.0;
    for (int v = first; v < chunks; ++v) sum += std::max(0.0, most[v] - pass.window_s);
    return sum;
  }
  double between(const Sums& sums, const Pass& pass) {
    return with_share(sums, pass.overlaps ? beyond(sums, pass, 0) : total(sums));
  }
  // The last reduction of a step, or the first gather.
  double once(const Sums& sums, const Pass& pass, double bucket) {
    if (!pass.overlaps) return with_share(sums, total(sums));
    double late = std::max(bucket, sums.seconds[0] - (1 - 1 / buckets) * pass.chunk_s);
    for (int p = 1; p < stages; ++p) late = std::max(late, sums.seconds[p * chunks] - p * pass.chunk_s);
    return with_share(sums, beyond(sums, pass, 1) + late);
  }
};

}  // namespace placer
