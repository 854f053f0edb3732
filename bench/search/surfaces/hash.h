// FNV-1a, a hash that is the same on all systems, unlike std::hash. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_HASH_H_
#define DSAT_BENCH_SEARCH_SURFACES_HASH_H_

#include <cstdint>
#include <string_view>

namespace dsat::bench {

// `hash`: the hash of the preceding texts.
inline uint64_t fnv1a(std::string_view text, uint64_t hash = 14695981039346656037u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_HASH_H_
