// profiler: the size of the model, the memory of a sample, and the micro batches that fit at each ZeRO stage.
//
// The first trial is the model-information trial: the user's own configuration with the smallest micro batch and one
// forward pass. Then --profile-trials and the trial limit allow measured trials, one after another, of the user's
// configuration at a stage of the study. Two micro batches separate the bytes per sample from the fixed bytes. A single
// one is larger, and the forward pass replaces the other. After an out-of-memory trial the profile continues at the
// highest stage of the study, with one more trial. If the smallest micro batch fails for another reason, the user's own
// one becomes the smallest. If that fails too, there is no profile, because every trial would fail.
//
// State: none is saved; a study has at most a handful of profile trials, and the host replays their events.
// Threading: the host's control thread. Units: bytes, samples. The profile's schema: docs/profile.md.
// Errors: a study without a micro batch or a stage, and a trial that reports no model size, throw dsat::Error.
#ifndef DSAT_PLUGINS_PROFILER_PROFILER_H_
#define DSAT_PLUGINS_PROFILER_PROFILER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/config/space.h"
#include "dsat/cost/memory.h"
#include "dsat/searcher.h"
#include "search/micro_batches.h"

namespace dsat {

class ModelProfiler final : public Profiler<ModelProfiler> {
 public:
  static Descriptor descriptor();
  ModelProfiler(Host host, const Options& options) : Profiler(host) { static_cast<void>(options); }

  void start(const Study& study);
  void on_result(const Result& result);
  void on_trial_exited(const Exit& exit);

 private:
  // A stage to run at; nullopt: the user's own ZeRO section.
  using StageOverride = std::optional<int>;

  Json overrides(StageOverride stage, int64_t micro_batch) const;
  Json merged(StageOverride stage, int64_t micro_batch) const;
  cost::Setup setup(StageOverride stage, int64_t micro_batch) const;
  int highest_stage() const { return study_.zero_stages.back(); }
  StageOverride measuring_stage() const;

  bool ask(const Json& overrides, const std::string& note);
  void ask_model_information(StageOverride stage);
  void model_information_ended(const Exit& exit);
  bool begin_at_own_micro_batch();
  bool turn_to_other_values();
  bool are_others_refused(const Exit& exit);
  bool take_given_information();
  void read_model_information();
  void learn_device_memory();
  void measured(const Exit& exit);
  void measure_next();
  std::optional<int64_t> next_micro_batch() const;
  int64_t trials_left() const;
  void give_up(const std::string& what, const Exit& exit);
  void hand_over();
  Json profile() const;

  Study study_;
  config::Space space_;
  std::unique_ptr<search::MicroBatches> micro_batches_;

  std::vector<TrialId> trials_;
  bool have_information_ = false;
  bool finished_ = false;
  bool smallest_failed_ = false;
  bool has_turned_ = false;       // the user's own configuration has failed
  Json others_ = Json::object();  // values in place of the user's own since then
  int64_t failed_before_ = 0;     // trials that failed until then
  StageOverride stage_;           // of the running trial
  int64_t micro_batch_ = 1;
  std::map<std::string, double> metrics_;  // of the running trial
  std::map<std::string, double> information_;

  cost::Inputs inputs_;
  int64_t world_size_ = 0;
  int64_t data_parallel_size_ = 1;
  std::vector<cost::Observation> observations_;
  std::optional<int64_t> least_failed_;  // smallest micro batch that failed for another reason than memory
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_PROFILER_PROFILER_H_
