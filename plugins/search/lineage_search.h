// The base of asha, binary, grid and random: many lineages at a time, with one trial of each at a time.
//
// A derived searcher decides which lineage continues (choose) and, unless it wants the binary search, which micro batch
// comes next (next_step). The base learns from every trial of the study, never asks for a measured configuration again,
// ends a lineage whose trial failed, and finishes when the trial limit is reached, when nothing is left to try, or when
// only failures come back.
//
// If a small batch always wins (a time per step is minimised and the global batch is not fixed), a lineage is one trial
// at the smallest micro batch.
// Threading: the host's control thread. Errors: as in dsat/searcher.h.
// State: the lineages and the ended trials are saved; everything else is rebuilt from them.
#ifndef DSAT_PLUGINS_SEARCH_LINEAGE_SEARCH_H_
#define DSAT_PLUGINS_SEARCH_LINEAGE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dsat/searcher.h"
#include "search/configurations.h"
#include "search/lineage.h"
#include "search/micro_batches.h"
#include "search/stopping.h"
#include "search/trial_history.h"

namespace dsat::search {

class LineageSearch : public Searcher<LineageSearch> {
 public:
  // The version of save()'s format: 2 added the failures of a lineage and its best metric after each trial, 3 the
  // refusals in a row.
  static constexpr uint32_t kStateVersion = 3;

  LineageSearch(Host host, double range_factor) : Searcher(host), range_factor_(range_factor) {}
  virtual ~LineageSearch() = default;

  void start(const Study& study);
  void on_result(const Result& result);
  void on_trial_exited(const Exit& exit);
  std::string save() const;
  void restore(const Study& study, std::string_view state);

 protected:
  // A micro batch to try, with the reason.
  struct Step {
    int64_t rank = 0;
    int64_t low = 0;  // ranks below it are settled
    std::string why;
  };

  // An ended trial of this searcher. restore() rebuilds the state from these.
  struct Record {
    TrialId trial = kNoTrial;
    size_t lineage = 0;
    int64_t rank = 0;
    Outcome outcome = Outcome::completed;
    std::optional<double> metric, peak_bytes;
  };

  using Usable = std::function<bool(const Configuration&)>;

  // A usable configuration for lineage `index`, by default a random one. nullopt: none is left.
  virtual std::optional<Configuration> draw(uint64_t index, const Usable& usable);
  // An idle lineage that continues. nullopt: none for now.
  virtual std::optional<size_t> choose() = 0;
  // The next micro batch of a lineage. nullopt: its search is complete.
  virtual std::optional<Step> next_step(size_t index) const { return binary_step(lineages_[index]); }
  // Called after each change of a lineage, and for a new one.
  virtual void changed(size_t /*index*/) {}
  // The reason to stop early although trials are left. nullopt: continue.
  virtual std::optional<std::string> enough() const { return std::nullopt; }

  // The reason for the end of a search in which no lineage can continue.
  virtual std::string nothing_left() const;

  // The first idle lineage, or a new one.
  std::optional<size_t> idle_or_new();
  // A lineage with a new configuration. nullopt: none is left that can fit.
  std::optional<size_t> open_lineage();

  // The binary search and its bounds (lineage_search_steps.cc).
  std::optional<Step> binary_step(const Lineage& lineage) const;
  std::optional<Step> certain_step(const Lineage& lineage, const Ceiling& known, int64_t high) const;
  bool goes_beyond(const Lineage& lineage, const Ceiling& known) const;
  // Does a lineage search down to the last rank? Otherwise it ends when the open range is a small share of its size.
  virtual bool precise() const { return false; }
  // Is a stage in which nothing fits left early? Otherwise each of its lineages finds that out by itself.
  virtual bool leaves_stages() const { return true; }
  bool too_fine(const Lineage& lineage, int64_t high) const;
  Ceiling ceiling(const Lineage& lineage) const;
  // The largest micro batch that a search considers, before the range factor.
  double upper_end(const Ceiling& ceiling) const;
  // The largest micro batch that completed in a stage or in a lower one, which needs more memory; 0: none.
  int64_t largest_held(int stage) const;
  // The largest rank that neither an out-of-memory trial nor a failure rules out.
  int64_t last_allowed(const Lineage& lineage, const Ceiling& ceiling) const;
  Json overrides(const Configuration& configuration, int64_t rank) const;
  std::string range(int64_t low, int64_t high) const;

  Configurations& configurations() { return *configurations_; }
  bool is_taken(const Configuration& configuration) const { return taken_.count(configuration) != 0; }
  const config::Space& space() const { return space_; }
  const Study& study() const { return study_; }
  const TrialHistory& history() const { return *history_; }
  const MicroBatches& micro_batches() const { return *micro_batches_; }
  const std::vector<Lineage>& lineages() const { return lineages_; }
  Lineage& lineage(size_t index) { return lineages_[index]; }
  int64_t trials_since_best() const { return since_best_; }
  // The largest rank that completed in a stage.
  std::optional<int64_t> top_of_stage(int stage) const;
  // The rank, at most `high`, at which a lineage continues below a failure for another reason than memory.
  int64_t below_failure(const Lineage& lineage, int64_t high) const;

 private:
  void prepare(const Study& study);
  void advance();
  bool take_step(size_t index);
  bool ask(size_t index, const Step& step, const Json& overrides);
  void settle(size_t index, TrialId trial, int64_t rank, Outcome outcome, std::optional<double> metric);
  void note_top(const Lineage& lineage);
  bool may_fit(const Configuration& configuration) const;
  size_t add_lineage(Configuration configuration);
  // Stages in which nothing fits so far (lineage_search_doubt.cc).
  bool is_doubtful(int stage) const;
  bool is_looked_into(int stage) const;
  std::optional<Configuration> next_frugal();
  int64_t largest_completed() const;  // of any configuration; -1: none
  std::optional<int64_t> failing_rank(const Lineage& lineage) const;
  std::optional<Step> first_step(const Lineage& lineage, int64_t last) const;
  void learn(const Record& record);
  std::optional<Step> plan(size_t index) const;
  std::optional<std::string> reason_to_stop() const;
  void end(const std::string& reason);

  double range_factor_;
  Study study_;
  config::Space space_;
  std::unique_ptr<MicroBatches> micro_batches_;
  std::unique_ptr<Configurations> configurations_;
  std::unique_ptr<TrialHistory> history_;
  bool small_wins_ = false;

  std::vector<Lineage> lineages_;
  size_t first_alive_ = 0;  // all lineages before it have ended
  std::unordered_map<TrialId, size_t> by_open_trial_;
  std::map<int, int64_t> top_of_stage_;
  // The smallest failed rank of each lineage that has completed a smaller one, and whether it has failed twice.
  std::multiset<std::pair<int64_t, bool>> failing_;
  std::vector<Record> records_;  // in the order of their ends
  std::set<Configuration> taken_;
  int64_t open_ = 0;
  int64_t barren_ = 0;  // lineages in a row that ended without a trial
  FailureStreak failures_;
  int64_t since_best_ = 0;
  bool limit_reached_ = false;
  bool finished_ = false;
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_LINEAGE_SEARCH_H_
