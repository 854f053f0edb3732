// A local runner over protocol_trial.py, and what it reported.
#ifndef DSAT_TESTS_HOST_RUNNER_RUNNER_FIXTURE_H_
#define DSAT_TESTS_HOST_RUNNER_RUNNER_FIXTURE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/runner/support.h"
#include "local/local_engine.h"
#include "runner/trial_runner.h"

namespace dsat::host {

class RunnerTest : public TempDirTest {
 protected:
  RunnerTest() {
    write_text(dir() / "user.json", "{}");
    environment_ = current_environment();
    set_variable(environment_, "DSAT_TRIAL_DIR", "/the/callers/own");
  }

  // A runner for the fixture with these further arguments.
  void make_runner(const std::vector<std::string>& arguments, int slots = 1, int slots_per_trial = 1) {
    std::vector<std::string> argv{
        "python3", "-S", "-E", std::string(DSAT_FIXTURES) + "/protocol_trial.py", "--deepspeed_config", "user.json"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    make_runner_for(argv, slots, slots_per_trial);
  }
  void make_runner_for(const std::vector<std::string>& argv, int slots = 1, int slots_per_trial = 1) {
    TrialRunnerOptions options{{}, {}, {}, dir() / "run", CommandTemplate({argv, {}, {}, dir(), environment_})};
    options.cwd = dir();
    options.environment = environment_;
    for (int i = 0; i < slots; ++i) options.slots.slots.push_back({std::to_string(i), i, {}});
    options.slots.shape = {{slots_per_trial}};
    options.term_grace = std::chrono::milliseconds(50);
    adjust(options);
    auto engine = std::make_unique<LocalEngine>(loop_, launcher_, options.slots.slots, max_slots_);
    runner_ = std::make_unique<TrialRunner>(loop_, std::move(options), std::move(engine));
    runner_->on_started = [this](const TrialStart& start) { starts_.push_back(start); };
    runner_->on_ended = [this](const TrialEnd& end) { ends_[end.id] = end; };
  }
  std::function<void(TrialRunnerOptions&)> adjust = [](TrialRunnerOptions&) {};

  static TrialSpec spec(uint64_t id, int micro_batch = 4, int accumulation = 2) {
    TrialSpec trial;
    trial.id = id;
    trial.config = {{"train_micro_batch_size_per_gpu", micro_batch},
                    {"gradient_accumulation_steps", accumulation},
                    {"train_batch_size", micro_batch * accumulation}};
    return trial;
  }
  TrialEnd wait(uint64_t id) {
    run_until(loop_, [&] { return ends_.count(id) != 0; });
    return ends_[id];
  }
  TrialEnd run(const TrialSpec& trial) {
    runner_->start(trial);
    return wait(trial.id);
  }
  // How many further trials there is room for.
  int room() const {
    const Json config = spec(0).config;
    std::vector<const Json*> trials{&config};
    while (runner_->has_room_for(trials)) trials.push_back(&config);
    return static_cast<int>(trials.size()) - 1;
  }
  TrialEnd run_misbehaving(const std::string& how) {
    make_runner({"--misbehave", how});
    return run(spec(0));
  }
  std::filesystem::path trial_dir(uint64_t id) const { return dir() / "run" / "trials" / std::to_string(id); }
  void wait_for_file(const std::filesystem::path& file) {
    look_until(loop_, [&] { return !read_text(file).empty(); });
  }

  Loop loop_;
  Environment environment_;
  std::filesystem::path launcher_{DSAT_LAUNCH};
  std::optional<int> max_slots_;
  std::vector<TrialStart> starts_;
  std::map<uint64_t, TrialEnd> ends_;
  std::unique_ptr<TrialRunner> runner_;
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_RUNNER_RUNNER_FIXTURE_H_
