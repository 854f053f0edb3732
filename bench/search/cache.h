// Scores and optima of earlier runs. A score depends on the files of searcher and profiler, the surface, the seed and
// the budgets, and is reused while these are the same. A damaged or foreign file is ignored.
// Threading: several threads may use it, each with its own keys. Errors: only file_hash throws dsat::Error.
#ifndef DSAT_BENCH_SEARCH_CACHE_H_
#define DSAT_BENCH_SEARCH_CACHE_H_

#include <filesystem>
#include <string>

#include "search/surfaces/surface.h"

namespace dsat::bench {

class Cache {
 public:
  explicit Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}  // empty: keeps nothing

  Json find(const std::string& key) const;  // null: not there
  void put(const std::string& key, const Json& value) const;

 private:
  std::filesystem::path file(const std::string& key) const;
  std::filesystem::path folder_;
};

// The hash of a file's content. Throws Error if it is missing.
std::string file_hash(const std::filesystem::path& file);

// A hash of the surface's answers at some hundred points of its space. Surfaces with equal hashes count as the same.
std::string fingerprint(const Surface& surface, const config::Space& space);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_CACHE_H_
