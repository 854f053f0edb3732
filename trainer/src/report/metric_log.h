// Where reported metrics go: stdout, a file of JSON lines, event files.
//
// Threading: one thread of rank 0. Ownership: borrows the context, owns the file. Errors: dsat::Error, one line that
// names the file.
#ifndef DSAT_TRAINER_REPORT_METRIC_LOG_H_
#define DSAT_TRAINER_REPORT_METRIC_LOG_H_

#include <fstream>
#include <string>

#include "dsat/trainer/context.h"

namespace dsat::trainer {

class MetricLog {
 public:
  // `file`: empty: none; of one that is there, lines of batches from `first_batch` on are dropped: they come again.
  MetricLog(TrialContext& context, const std::string& file, int64_t first_batch);

  // `phase`: "training" or "validation". `batch`: the last optimizer step, counted from 0.
  void write(const std::string& phase, int64_t batch, const Json& metrics);

 private:
  TrialContext& context_;
  std::string path_;
  std::ofstream file_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_REPORT_METRIC_LOG_H_
