// Results of earlier runs: scores and optima. A score depends on the searcher's file, the profiler's, the surface, the
// seed and the budgets: what has not changed is not run again. A damaged or foreign file is as good as none.
// Threading: several threads may use it, each with keys of its own. Errors: file_hash alone throws dsat::Error.
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

// Hashes a file's content; a missing one is an Error.
std::string file_hash(const std::filesystem::path& file);

// A hash of what a surface answers at some hundred points of its space: surfaces that agree there count as the same.
std::string fingerprint(const Surface& surface, const config::Space& space);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_CACHE_H_
