// guided: proposes each trial from a model of ZeRO training that the trials themselves correct.
//
// Purpose: find the fastest configuration in few trials and with few that run out of memory. How it decides:
//   docs/searchers.md. This class keeps the books: it asks for trials while slots are free, hands their ends to
//   Beliefs, asks Planner what comes next, and finishes when the expected gain is below the tolerance, when the trial
//   limit is reached or when nothing is left to try.
// State: none is saved; the host replays the events, and the same events give the same decisions. Threading: the
//   host's control thread.
#ifndef DSAT_PLUGINS_GUIDED_GUIDED_H_
#define DSAT_PLUGINS_GUIDED_GUIDED_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/searcher.h"
#include "zero_model/choice/acquisition.h"
#include "zero_model/choice/surrogate.h"

namespace dsat {

class Guided final : public Searcher<Guided> {
 public:
  static Descriptor descriptor();
  Guided(Host host, const Options& options);

  void start(const Study& study);
  void on_result(const Result& result);
  void on_trial_exited(const Exit& exit);

 private:
  struct Open {
    TrialId trial = kNoTrial;
    guided::Point point;
    bool again = false;  // the machinery lost it before
    std::optional<double> metric, forward, backward, step;
  };

  void prepare(const Study& study);
  void advance();
  std::optional<guided::Proposal> propose();
  bool ask(const guided::Proposal& proposal, bool again);
  guided::Risk risk(const std::vector<guided::Point>& running) const;
  bool worth_it(const guided::Proposal& proposal) const;
  std::vector<guided::Point> pending() const;
  void end(const std::string& reason);
  std::string note(const guided::Proposal& proposal) const;

  double tolerance_, most_risk_;
  Study study_;
  std::unique_ptr<guided::Lattice> lattice_;
  std::unique_ptr<guided::Beliefs> beliefs_;
  std::unique_ptr<guided::Planner> planner_;
  std::vector<guided::Proposal> queue_;  // of an old study: what the last search found, best last
  std::vector<Open> open_;
  int64_t failures_ = 0;  // in a row, that taught nothing
  uint64_t asked_ = 0;
  std::string last_failure_;
  bool beside_ = false;  // several trials run at once
  bool limit_reached_ = false;
  bool finished_ = false;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GUIDED_GUIDED_H_
