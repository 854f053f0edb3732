// Metrics that are not means over batches: their values are collected and reduced on every rank (slot), then over the
// ranks.
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

// A derived class may add forms of update() with other arguments, because only the user calls it.
class MetricReducer {
 public:
  virtual ~MetricReducer() = default;
  // Before each training step that is reported, and before each validation.
  virtual void reset() = 0;
  virtual void update(const Json& value) = 0;
  // The value of this rank, as JSON, because it is sent to other ranks.
  virtual Json per_slot_reduce() = 0;
  // `per_slot`: one entry for each rank that reports metrics, in the order of ranks. Every rank calls this. A named
  // reducer returns its metric, an unnamed one an object of metrics.
  virtual Json cross_slot_reduce(const std::vector<Json>& per_slot) = 0;
};

// The metric as a function of all values given to update() on all ranks: rank by rank, in the order of the calls.
using ReduceFunction = std::function<Json(const std::vector<Json>& values)>;
std::shared_ptr<MetricReducer> make_reducer(ReduceFunction function);

// The work of a trial between two reports. A reducer takes part in one phase or in both.
enum class Phase { training, validation };

// The reducers of one trial.
class Reducers {
 public:
  // Gives every rank the values of all ranks.
  using Gather = std::function<std::vector<Json>(const Json& mine)>;

  // Errors: a null reducer, a name that is taken, a reducer for neither phase.
  void add(std::shared_ptr<MetricReducer> reducer, std::optional<std::string> name, bool for_training,
           bool for_validation);
  void reset(Phase phase);
  // An object with one entry for each named reducer, and the entries of the unnamed ones. Errors: two entries of one
  // name, a result of an unnamed reducer that is no object, values that are not JSON.
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
