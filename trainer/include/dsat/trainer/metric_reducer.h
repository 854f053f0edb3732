// Metrics that are no mean over batches: collected on every rank (slot), reduced there, then over the ranks.
//
// Threading: one rank, one thread. reduce() is collective through the gather that it is given. Ownership: reducers are
// shared with the trial that updates them. Errors: dsat::Error, one line that names the reducer or the metric.
#ifndef DSAT_TRAINER_METRIC_REDUCER_H_
#define DSAT_TRAINER_METRIC_REDUCER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::trainer {

// A derived class may have other forms of update() as well, with arguments of its own: only the user calls it.
class MetricReducer {
 public:
  virtual ~MetricReducer() = default;
  // Before each training step that is reported, and before each validation.
  virtual void reset() = 0;
  virtual void update(const Json& value) = 0;
  // What this rank has to say; JSON, because it travels.
  virtual Json per_slot_reduce() = 0;
  // `per_slot`: one entry a rank that reports metrics, in the order of ranks. Every rank computes it. A named reducer
  // gives that metric; an unnamed one an object of metrics.
  virtual Json cross_slot_reduce(const std::vector<Json>& per_slot) = 0;
};

// The metric as a function of all values given to update() on all ranks: rank by rank, in the order of the calls.
using ReduceFunction = std::function<Json(const std::vector<Json>& values)>;
std::shared_ptr<MetricReducer> make_reducer(ReduceFunction function);

// What a trial does between two reports: a reducer takes part in one of them or in both.
enum class Phase { training, validation };

// The reducers of one trial.
class Reducers {
 public:
  // Gives every rank the values of all ranks.
  using Gather = std::function<std::vector<Json>(const Json& mine)>;

  // Errors: the null reducer, the name of another, a reducer for neither phase.
  void add(std::shared_ptr<MetricReducer> reducer, std::optional<std::string> name, bool for_training,
           bool for_validation);
  void reset(Phase phase);
  // An object with one entry a named reducer and the entries of unnamed ones. Errors: two of one name, an unnamed
  // reducer's result that is no object, values that are not JSON.
  Json reduce(Phase phase, const Gather& gather);
  bool empty() const { return all_.empty(); }

 private:
  struct Wrapped {
    std::shared_ptr<MetricReducer> reducer;
    std::optional<std::string> name;
    bool for_training, for_validation;
    bool takes_part(Phase phase) const { return phase == Phase::training ? for_training : for_validation; }
  };
  std::vector<Wrapped> all_;
};

// `metrics` with the entries of `more`; a key of both is an Error.
void add_metrics(Json& metrics, const Json& more);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_METRIC_REDUCER_H_
