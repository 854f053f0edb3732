// What the host itself can do, over simulated trials that take no time to answer.
//
//   bench_host [--trials N] [--searcher NAME]...
//
// growth: trials a second and memory of whole studies of 1e2, 1e3, ... N trials (default 1e5), each in a process of its
//   own, without a journal and with one. slots: how busy 16 slots are with trials of uneven length. handover: the time
//   from a real process's end to the start of the next one.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "dsat/config/batch.h"
#include "dsat/host/study.h"
#include "dsat/random.h"

namespace {

namespace fs = std::filesystem;
using dsat::Json;
using dsat::host::Outcome;
using dsat::host::SimulatedRun;
using dsat::host::SimulatedTrial;
using dsat::host::StudyOptions;
using dsat::host::StudyResult;

// A model that fits up to a few dozen samples; every key of the space changes its speed a little.
class Surface : public dsat::host::Surface {
 public:
  SimulatedRun run(const SimulatedTrial& trial) const override {
    SimulatedRun run;
    dsat::Random random(trial.seed);
    run.device_memory_bytes = 80000000000;
    // From 20 to 160 s, and a tenth of it when memory runs out.
    run.seconds = 20 * std::exp2(3 * random.uniform());
    if (trial.model_info) {
      run.metrics = {{"num_params", 1.5e9}, {"trainable_num_params", 1.5e9}, {"activation_mem_per_gpu", 1e9}};
      return run;
    }
    const Json& zero = trial.config.at("zero_optimization");
    const double samples = trial.config.at(dsat::config::kMicroBatchKey).get<double>();
    const double stage = zero.value("stage", 0.0);
    const double bucket = zero.value("reduce_bucket_size", 5e8);
    const double bytes = 30e9 - 8e9 * stage + 2 * bucket + 1.2e9 * samples;
    if (bytes > 78e9) {
      run.outcome = Outcome::out_of_memory;
      run.reason = "out of memory";
      run.seconds /= 10;
      return run;
    }
    run.peak_bytes = static_cast<uint64_t>(bytes);
    const double latency_us =
        (2e4 + 5e3 * samples) * (1 + 0.02 * stage + 1e7 / bucket * 0.01) * (1 + 0.01 * random.uniform());
    const auto train_batch = trial.config.at(dsat::config::kTrainBatchKey).get<double>();
    run.metrics = {{"forward", latency_us / 3},
                   {"backward", latency_us / 2},
                   {"step", latency_us / 6},
                   {"latency", latency_us},
                   {"throughput", train_batch * 1e6 / latency_us},
                   {"FLOPS_per_gpu", samples * 1e13 / latency_us * 1e6}};
    return run;
  }
};

// Wide enough for 1e5 trials of different configurations.
Json wide_space() {
  Json buckets = Json::array();
  for (int i = 0; i < 128; ++i) buckets.push_back(static_cast<int64_t>(1e6 * std::exp2(i / 12.0)));
  return {{"train_micro_batch_size_per_gpu", 1},
          {"zero_optimization", {{"stage", 1}, {"reduce_bucket_size", buckets}, {"allgather_bucket_size", buckets}}}};
}

StudyOptions options_for(const std::string& searcher, int trials) {
  StudyOptions options;
  options.isolation = dsat::host::Isolation::none;
  options.searcher.plugin = searcher;
  // It would end as soon as further trials promise too little.
  if (searcher == "guided") options.searcher.options = {{"tolerance", 0.0}};
  options.zero_stages = {0, 1, 2, 3};
  options.max_trials = trials;
  dsat::host::Simulation simulation;
  simulation.surface = std::make_shared<Surface>();
  simulation.base_config = wide_space();
  simulation.slots = 16;
  simulation.slots_per_trial = 1;
  simulation.keep = false;
  options.simulation = std::move(simulation);
  return options;
}

// When each trial ran, in seconds of virtual time.
class Times : public dsat::host::Observer {
 public:
  void on_trial_ended(const dsat::host::TrialRecord& trial) override {
    ++ended;
    if (!keep || trial.started_at.empty()) return;
    spans.push_back({seconds(trial.started_at), seconds(trial.ended_at)});
  }
  static double seconds(const std::string& rfc3339) {
    std::tm utc{};
    const char* fraction = strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
    return static_cast<double>(timegm(&utc)) + std::strtod(fraction, nullptr);
  }
  bool keep = false;
  int ended = 0;
  std::vector<std::pair<double, double>> spans;
};

int run_study(const StudyOptions& options, Times& times) {
  auto study = dsat::host::Study::create(options);
  if (!study.ok()) return std::fprintf(stderr, "bench_host: %s\n", study.status().message().c_str()), 1;
  const StudyResult result = study.value()->run(times);
  if (result.status == dsat::host::StudyStatus::completed) return 0;
  return std::fprintf(stderr, "bench_host: %s\n", result.reason.c_str()), 1;
}

// In a process of its own, so that its memory is its own.
int in_child(const std::function<int()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int status = work();
    std::fflush(stdout);
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int growth(const std::string& searcher, int trials, const fs::path& journal) {
  return in_child([&] {
    StudyOptions options = options_for(searcher, trials);
    if (!journal.empty()) {
      options.simulation->keep = true;
      options.output_dir = journal;
    }
    Times times;
    const double start = now_seconds();
    const int status = run_study(options, times);
    const double taken = now_seconds() - start;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    std::printf("%-8s %-8s %8d %9d %9.2f %9.2f %12.0f %9.1f %14.2f\n", searcher.c_str(),
                journal.empty() ? "none" : "kept", trials, times.ended, taken, cpu, times.ended / cpu,
                static_cast<double>(usage.ru_maxrss) / 1024, static_cast<double>(usage.ru_maxrss) / times.ended);
    return status;
  });
}

// Busy time of 16 slots over the search, from the first trial that has company to the last start.
int slot_use(const std::string& searcher) {
  StudyOptions options = options_for(searcher, 2000);
  Times times;
  times.keep = true;
  const int status = run_study(options, times);
  double begin = 0, end = 0;
  for (size_t i = 1; i < times.spans.size(); ++i) {
    end = std::max(end, times.spans[i].first);
  }
  std::sort(times.spans.begin(), times.spans.end());
  for (size_t i = 0; i + 1 < times.spans.size() && begin == 0; ++i) {
    if (times.spans[i + 1].first < times.spans[i].second) begin = times.spans[i].first;
  }
  double busy = 0;
  for (const auto& [from, to] : times.spans) busy += std::max(0.0, std::min(to, end) - std::max(from, begin));
  std::printf("%-8s %8d trials on 16 slots: %.2f %% busy\n", searcher.c_str(), times.ended,
              100 * busy / (16 * (end - begin)));
  return status;
}

// Gaps between one process's end and the next one's start, with one slot: real processes, real journal.
class Gaps : public dsat::host::Observer {
 public:
  void on_trial_ended(const dsat::host::TrialRecord& trial) override { ended_ = Times::seconds(trial.ended_at); }
  void on_trial_started(const dsat::host::TrialRecord& trial) override {
    if (ended_ > 0) gaps.push_back(1e3 * (Times::seconds(trial.started_at) - ended_));
  }
  std::vector<double> gaps;

 private:
  double ended_ = 0;
};

int handover(const fs::path& program, const fs::path& folder) {
  const fs::path config = folder / "ds_config.json";
  std::ofstream(config) << R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}})";
  StudyOptions options;
  options.isolation = dsat::host::Isolation::none;
  options.command = {program.string(), "--deepspeed_config", config.string()};
  options.searcher.plugin = "random";
  options.max_trials = 200;
  options.slots = options.slots_per_trial = 1;
  options.device_memory_bytes = 100000000000;
  options.output_dir = folder / "handover";
  options.launcher = program.parent_path().parent_path() / "dsat-launch";
  Gaps gaps;
  auto study = dsat::host::Study::create(options);
  if (!study.ok()) return std::fprintf(stderr, "bench_host: %s\n", study.status().message().c_str()), 1;
  study.value()->run(gaps);
  std::sort(gaps.gaps.begin(), gaps.gaps.end());
  if (gaps.gaps.empty()) return 1;
  std::printf("%zu hand-overs: median %.2f ms, 95 %% below %.2f ms\n", gaps.gaps.size(),
              gaps.gaps[gaps.gaps.size() / 2], gaps.gaps[gaps.gaps.size() * 95 / 100]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int most = 100000;
  std::vector<std::string> searchers;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--trials") most = std::atoi(argv[i + 1]);
    if (option == "--searcher") searchers.emplace_back(argv[i + 1]);
  }
  if (argc % 2 == 0 || most < 1)
    return std::fprintf(stderr, "usage: bench_host [--trials N] [--searcher NAME]...\n"), 2;
  if (searchers.empty()) searchers = {"random", "asha", "binary"};
  const fs::path program = fs::canonical("/proc/self/exe");
  setenv("DSAT_PLUGIN_PATH", (program.parent_path().parent_path() / "plugins").c_str(), 0);
  std::string name = (program.parent_path() / "study-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  int status = 0;
  std::printf("searcher journal   wanted     ended         s     CPU s trials/CPU s       MiB  KiB/trial (all)\n");
  for (const std::string& searcher : searchers) {
    for (int trials = 100; trials <= most; trials *= 10) {
      status |= growth(searcher, trials, {});
      status |= growth(searcher, trials, folder / (searcher + std::to_string(trials)));
    }
  }
  std::printf("\n");
  for (const std::string& searcher : searchers) status |= slot_use(searcher);
  std::printf("\n");
  status |= handover(program.parent_path() / "instant_trial", folder);
  fs::remove_all(folder);
  return status;
}
