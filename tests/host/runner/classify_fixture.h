// A trial's folder in which a test leaves what the trial would have left, and the facts of its end.
#ifndef DSAT_TESTS_HOST_RUNNER_CLASSIFY_FIXTURE_H_
#define DSAT_TESTS_HOST_RUNNER_CLASSIFY_FIXTURE_H_

#include <string>

#include "host/runner/support.h"
#include "runner/classify.h"
#include "runner/trial_files.h"

namespace dsat::host {

class Classify : public TempDirTest {
 protected:
  Classify() {
    facts_.trial_dir = dir();
    facts_.config = {{"train_batch_size", 8}, {"gradient_accumulation_steps", 1}};
    facts_.exit = {1, 0};
  }
  void stderr_is(const std::string& text) { write_text(dir() / kStderrFile, text); }
  void metrics_are(const std::string& text) { write_text(dir() / kMetricsFile, text); }
  TrialEnd end() { return classify(facts_); }

  const std::string good_ = R"({"latency": 1000, "throughput": 8000, "peak_memory": 5})";
  RunFacts facts_;
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_RUNNER_CLASSIFY_FIXTURE_H_
