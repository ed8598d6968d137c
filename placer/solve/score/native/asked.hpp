// Operations that are not worked out here: what the scorer said of every site, or says now.
#pragma once
#include "operation.hpp"

namespace placer {

// Groups inside one atom each take what they take on its site.
struct Inside : Operation {
  Ints atom;        // of each group
  Reals on_site;

  void start() { prepare(); }
  void rebuild() override {
    for (int g = 0; g < groups; ++g) price(g);
    keep();
    changed.clear();
  }
  void settle() override {
    changed.clear();
    for (int g : touched) price(g);
  }

 private:
  void price(int g) {
    const double seconds = on_site[layout->site_of(atom[g])];
    tell(g, 0, seconds, seconds);
  }
};

struct Asked : PricedAnew {
  void start() { prepare(); }

 private:
  void price() override { tell_asked(); }
};

}  // namespace placer
