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
    add_up(&Part::reduce, peak);
    double sum = once(backward, 0.0);
    if (reduces_each) add_up(&Part::again, peak), sum += others * between(backward);
    add_up(&Part::gather, peak);
    sum += once(forward, bucket);
    if (gathers_each) sum += others * between(forward);
    return sum / every + embedding;
  }

 private:
  Reals seconds;  // [stage, chunk]
  Reals most;     // [chunk]

  void add_up(Reals Part::*of, const Reals& peak) {
    seconds.assign((size_t)stages * chunks, 0.0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Reals& each = parts[i].*of;
      for (int p = 0; p < stages && !each.empty(); ++p) {
        const double own = peak[i * stages + p];
        for (int at = p * chunks; at < (p + 1) * chunks; ++at) seconds[at] += each[at] * own;
      }
    }
  }
  double total() const {
    double most = 0.0;
    for (int p = 0; p < stages; ++p)
      most = std::max(most, std::accumulate(&seconds[p * chunks], &seconds[p * chunks] + chunks, 0.0));
    return most;
  }
  // What is hidden takes multiprocessors from the work.
  double with_share(double seen) const { return share ? seen + share * std::max(0.0, total() - seen) : seen; }
  double beyond(const Pass& pass, int first) {
    most.assign(chunks, 0.0);
    for (int p = 0; p < stages; ++p)
      for (int v = 0; v < chunks; ++v) most[v] = std::max(most[v], seconds[p * chunks + v]);
    double sum = 0.0;
    for (int v = first; v < chunks; ++v) sum += std::max(0.0, most[v] - pass.window_s);
    return sum;
  }
  double between(const Pass& pass) { return with_share(pass.overlaps ? beyond(pass, 0) : total()); }
  // The last reduction of a step, or the first gather.
  double once(const Pass& pass, double bucket) {
    if (!pass.overlaps) return with_share(total());
    double late = std::max(bucket, seconds[0] - (1 - 1 / buckets) * pass.chunk_s);
    for (int p = 1; p < stages; ++p) late = std::max(late, seconds[p * chunks] - p * pass.chunk_s);
    return with_share(beyond(pass, 1) + late);
  }
};

}  // namespace placer
