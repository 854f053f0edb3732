// A searcher in C++: multiplies the micro batch of each ZeRO stage by a factor while that makes the training faster.
#include <dsat/config/space.h>
#include <dsat/searcher.h>

class Climb : public dsat::Searcher<Climb> {
 public:
  static dsat::Descriptor descriptor() {
    return {"example.climb",
            "climb",
            "1.0.0",
            "multiplies the micro batch while it pays, stage by stage",
            {dsat::OptionSpec::number("factor", 2.0, "from one micro batch to the next").min(1.1).max(16.0)}};
  }
  Climb(dsat::Host host, const dsat::Options& options) : Searcher(host), factor_(options.get<double>("factor")) {}

  void start(const dsat::Study& study) {
    study_ = study;
    space_ = dsat::config::space_from_json(study.space);
    for (const dsat::Json& seen : study.observations)  // one of the profiler's trials may be the best
      if (seen["metrics"].contains(study.metric)) consider(seen["trial"], seen["metrics"][study.metric]);
    next_stage();
  }

  void on_result(const dsat::Result& result) {
    const auto metric = result.metric(study_.metric);
    if (!metric) return;
    improved_ = !best_of_stage_ || better(*metric, *best_of_stage_);
    if (improved_) best_of_stage_ = metric;
    consider(result.trial(), *metric);
  }

  void on_trial_exited(const dsat::Exit& exit) {
    if (finished_ || exit.outcome() == dsat::Outcome::stopped) return;
    const int64_t larger = micro_batch_ + std::max<int64_t>(1, (factor_ - 1) * micro_batch_);
    if (exit.outcome() != dsat::Outcome::completed || !improved_) return next_stage();
    ask(larger);
  }

 private:
  bool better(double metric, double than) const { return study_.maximise ? metric > than : metric < than; }
  void consider(dsat::TrialId trial, double metric) {
    if (best_metric_ && !better(metric, *best_metric_)) return;
    best_metric_ = metric, best_ = trial;
  }

  void next_stage() {
    if (stage_ == space_.stages.size()) return end("every stage was climbed");
    ++stage_;
    best_of_stage_.reset();
    ask(space_.min_micro_batch);
  }

  void ask(int64_t micro_batch) {
    while (micro_batch < 1'000'000 && !space_.allows_micro_batch(micro_batch)) ++micro_batch;
    if (!space_.allows_micro_batch(micro_batch)) return next_stage();
    micro_batch_ = micro_batch;
    improved_ = false;
    const dsat::config::StageSpace& stage = space_.stages[stage_ - 1];
    const std::vector<size_t> first_values(stage.axes.size());  // the first value of every axis
    dsat::TrialRequest request;
    request.overrides = dsat::config::overrides(stage, first_values, micro_batch);
    request.note = "climbing stage " + std::to_string(stage.stage);
    if (!create_trial(request)) end("the trial limit is reached");
  }

  void end(const char* reason) {
    finished_ = true;
    finish(reason, best_);
  }
  double factor_;
  dsat::Study study_;
  dsat::config::Space space_;
  size_t stage_ = 0;  // the current one of space_.stages, counted from 1
  int64_t micro_batch_ = 1;
  bool improved_ = false, finished_ = false;
  std::optional<double> best_of_stage_, best_metric_;
  dsat::TrialId best_ = dsat::kNoTrial;
};
DSAT_PLUGIN(Climb);
