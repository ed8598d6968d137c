// Random numbers of walks.
#pragma once
#include <cstdint>

namespace placer {

// xorshift128+ (Vigna 2017, "Further scramblings of Marsaglia's xorshift generators").
struct Random {
  uint64_t a, b;
  explicit Random(uint64_t seed) : a(seed * 0x9e3779b97f4a7c15ull + 1), b(seed ^ 0xd1b54a32d192ed03ull) {
    for (int i = 0; i < 20; ++i) next();
  }
  uint64_t next() {
    uint64_t x = a;
    const uint64_t y = b;
    a = y;
    x ^= x << 23;
    b = x ^ y ^ (x >> 17) ^ (y >> 26);
    return b + y;
  }
  double real() { return (double)(next() >> 11) * 0x1.0p-53; }
  int below(int n) { return (int)(((unsigned __int128)next() * (uint64_t)n) >> 64); }
};

}  // namespace placer
