// A surface over recorded trials in a CSV file. docs/simulator.md has the columns and the answers between them.
// Threading: immutable once read. Errors: dsat::Error that names file, line and column.
#ifndef DSAT_HOST_SIM_TRACE_H_
#define DSAT_HOST_SIM_TRACE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/simulation.h"

namespace dsat::host::sim {

struct TraceRow {
  std::vector<std::string> config;  // the identity of each value; empty: no value
  int stage = 0;
  int slots = 0;  // 0: unknown
  int64_t micro_batch = 1;
  bool model_info = false;
  Outcome outcome = Outcome::completed;
  std::string reason;
  Json metrics = Json::object();
  std::optional<double> peak_bytes, device_memory, seconds;
};

class TraceSurface : public Surface {
 public:
  TraceSurface(std::string_view text, const std::string& file);
  TraceSurface(const TraceSurface&) = delete;
  TraceSurface& operator=(const TraceSurface&) = delete;
  SimulatedRun run(const SimulatedTrial& trial) const override;

  std::vector<std::string> metrics() const;  // metrics of at least one completed trial
  int slots() const;                         // of the largest trial
  // Has the values of each recorded key as an axis, and the lowest recorded stage.
  Json base_config() const;

 private:
  using Group = std::vector<const TraceRow*>;  // trials of one configuration and size, by micro batch
  void read_row(const std::vector<std::string>& header, const std::vector<std::string>& cells,
                const std::string& where);
  void check(const std::string& file) const;
  const Group* nearest(const SimulatedTrial& trial, int stage, std::string& differs) const;
  const TraceRow& model_row() const;
  bool fits(const TraceRow& largest, int64_t samples) const;
  const TraceRow* too_big_elsewhere(const Group& group, int64_t samples) const;
  SimulatedRun beyond(const Group& group, const TraceRow* largest, const SimulatedTrial& trial) const;
  SimulatedRun mixture(const TraceRow& below, const TraceRow& above, const SimulatedTrial& trial) const;
  SimulatedRun between(const Group& group, const SimulatedTrial& trial) const;
  SimulatedRun answer_of(const TraceRow& row) const;

  std::vector<std::string> keys_;  // configuration columns except stage and micro batch
  std::vector<TraceRow> rows_;
  std::vector<Group> groups_;
};

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_TRACE_H_
