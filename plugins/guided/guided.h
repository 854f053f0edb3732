// guided: Bayesian optimisation with a model of ZeRO training that the trials correct.
//
// Purpose: find the fastest configuration in few trials, few of them out of memory. docs/searchers.md describes the
//   method. This class keeps the open trials: it asks for trials while slots are free, passes their ends to the
//   surrogate, and takes the next one from the acquisition. It finishes when the expected gain is below the tolerance,
//   when the trial limit is reached, or when nothing is left to try.
// State: none is saved; the host replays the events, and the same events give the same decisions.
// Threading: the host's control thread. Errors: a space without a stage or a micro batch throws dsat::Error.
#ifndef DSAT_PLUGINS_GUIDED_GUIDED_H_
#define DSAT_PLUGINS_GUIDED_GUIDED_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/searcher.h"
#include "guided/promises.h"
#include "search/stopping.h"
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
  struct OpenTrial {
    TrialId trial = kNoTrial;
    zero_model::Point point;
    double gain = 0;     // expected
    bool again = false;  // an earlier trial of this point was lost
    std::optional<double> metric{};
  };

  void prepare(const Study& study);
  void advance();
  std::optional<zero_model::Proposal> propose();
  std::optional<zero_model::Proposal> propose_left_over();
  bool ask(const zero_model::Proposal& proposal, bool again);
  int64_t most_open() const;
  zero_model::Risk risk(const std::vector<zero_model::Point>& running) const;
  bool worth_it(const zero_model::Proposal& proposal) const;
  double kept(size_t last) const;
  std::vector<zero_model::Point> pending() const;
  void end(const std::string& reason);
  std::string note(const zero_model::Proposal& proposal) const;

  double tolerance_, most_risk_;
  Study study_;
  std::unique_ptr<zero_model::ModelSpace> space_;
  std::unique_ptr<zero_model::Surrogate> surrogate_;
  std::unique_ptr<zero_model::Acquisition> acquisition_;
  std::vector<OpenTrial> open_;
  search::FailureStreak failures_;
  Promises promises_;
  uint64_t asked_ = 0;
  uint64_t refused_ = 0;    // refused trials among them, which do not count against the limit
  int64_t spent_ = 0;       // trials of the study before this search
  bool left_over_ = false;  // the next proposal may use a trial that nothing else needs
  bool limit_reached_ = false;
  bool finished_ = false;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GUIDED_GUIDED_H_
