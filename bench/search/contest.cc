// Loads the plugins, prepares each scenario (optimum, fingerprint), and runs pairs of scenario and searcher on the
// threads. Cached scores are not computed again.
#include "search/contest.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "dsat/config/json.h"
#include "search/cache.h"
#include "search/optuna.h"
#include "search/surfaces/optimum.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

// To be raised with each change of a study's rules here, or of the contents of a score, so that cached scores expire.
constexpr const char* kRules = "rules 3";

bool is_optuna(const std::string& searcher) { return searcher.rfind("optuna-", 0) == 0; }

// A plugin's library, loaded for the life of the program.
class Library {
 public:
  Library(const std::filesystem::path& folder, const std::string& name)
      : file_(folder / fmt::format("lib{}.so", name)) {
    void* handle = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw Error(fmt::format("cannot load a plugin: {}", dlerror()));
    entry_ = static_cast<const dsat_plugin_entry*>(dlsym(handle, "dsat_plugin_entry_v1"));
    if (entry_ == nullptr) throw Error(fmt::format("{} is no dsat plugin", file_.string()));
    hash_ = file_hash(file_);
  }
  const dsat_factory& factory(const char* id) const {
    const void* found = entry_->get_factory(id);
    if (found == nullptr) throw Error(fmt::format("{} has no {}", file_.string(), id));
    return *static_cast<const dsat_factory*>(found);
  }
  const std::string& hash() const { return hash_; }

 private:
  std::filesystem::path file_;
  const dsat_plugin_entry* entry_ = nullptr;
  std::string hash_;
};

// The changes of a configuration to the user's own: "stage 2, micro batch 12, reduce_bucket_size 5000000".
std::string overrides_of(const Surface& surface, const Json& config) {
  if (config.is_null()) return "nothing";
  const SurfacePoint point = point_of(config);
  std::string text = fmt::format("stage {}, micro batch {}", point.stage, point.micro_batch);
  const Json base = surface.base_config().value("zero_optimization", Json::object());
  const Json zero = config.value("zero_optimization", Json::object());
  for (const auto& [key, value] : zero.items()) {
    if (key != "stage" && base.value(key, Json()) != value) text += fmt::format(", {} {}", key, value.dump());
  }
  return text;
}

const char* half_of(const Surface& surface) { return surface.reports_peak ? "reported" : "silent"; }

struct ContestScenario {
  const Surface* surface;
  config::Space space;
  Optimum optimum;
  std::string fingerprint;
};

// The regrets of other choices: with the best micro batch for the same values, and with the best values of each stage.
std::string missing_of(const ContestScenario& scenario, const Json& config) {
  const auto regret = [&](const config::Space& space) {
    return regret_percent(find_optimum(*scenario.surface, space).throughput, scenario.optimum.throughput);
  };
  std::string stages, arm;
  for (const config::StageSpace& stage : scenario.space.stages) {
    config::Space space = scenario.space;
    space.stages = {stage};
    stages += fmt::format(", {:.2f} in stage {}", regret(space), stage.stage);
    if (stage.stage != point_of(config).stage) continue;
    for (config::Axis& axis : space.stages.front().axes) {
      if (const Json* value = config::find(config, axis.key)) axis.values = {*value};
    }
    arm = fmt::format("{:.2f}", regret(space));
  }
  return fmt::format("regret could be {} with the same values{}", arm, stages);
}

// Describes each trial: measured speed, true regret, true share of the usable memory, overrides, and the searcher's
// note.
std::string trace_of(const ContestScenario& scenario, const std::string& searcher, uint64_t seed, const StudyRun& run) {
  const Surface& surface = *scenario.surface;
  const auto regret = [&](const Json& config) {
    return regret_percent(surface.throughput(point_of(config)), scenario.optimum.throughput);
  };
  std::string text = fmt::format("{} on {}, {}, seed {}: {}\nthe optimum, {:.5g} samples a second, is {}\n", searcher,
                                 surface.name, half_of(surface), seed, surface.about, scenario.optimum.throughput,
                                 scenario.optimum.overrides.dump());
  for (const TrialLog& trial : run.trials) {
    const bool measured = trial.throughput > 0;  // false for a model-information trial
    const double memory = surface.truth(point_of(trial.config)).peak_bytes;
    text += fmt::format("{:3}{} {:<13} measured {:>9} regret {:>6} memory {:6.1f} %  {}\n    {}\n", trial.id,
                        trial.repeat ? "r" : " ", outcome_name(trial.outcome),
                        measured ? fmt::format("{:.5g}", trial.throughput) : "-",
                        measured ? fmt::format("{:.2f}", regret(trial.config)) : "-",
                        100 * memory / (surface.job.usable_share * surface.job.device_memory),
                        overrides_of(surface, trial.config), trial.note);
  }
  const std::string handed =
      run.best.is_null() ? "nothing"
                         : fmt::format("{:.2f} % of regret, {}", regret(run.best), overrides_of(surface, run.best));
  text += fmt::format("handed back: {}; {}\n", handed, run.finish_reason);
  return text + (run.best.is_null() ? "" : missing_of(scenario, run.best) + "\n") + "\n";
}

// The number of profile trials that the searcher asks for. The host grants it if the user gives no number.
int64_t profile_trials_of(const dsat_factory& searcher) {
  const char* wanted = searcher.descriptor(0)->study_json;
  return Json::parse(wanted == nullptr ? "{}" : wanted).value("profile_trials", Limits().profile_trials);
}

class Contest {
 public:
  explicit Contest(const ContestOptions& options)
      : options_(options), cache_(options.cache), profiler_(options.plugins, "profiler") {
    for (const std::string& name : options.searchers) {
      libraries_.push_back(is_optuna(name) ? nullptr : std::make_unique<Library>(options.plugins, name));
    }
    if (std::any_of(options.searchers.begin(), options.searchers.end(), is_optuna)) {
      script_hash_ = file_hash(DSAT_OPTUNA_PEER);
      optuna_version_ = OptunaProcess(options.python, DSAT_OPTUNA_PEER).version();
    }
  }

  std::vector<ScenarioResult> run() {
    results_.resize(options_.surfaces.size());
    scenarios_.resize(options_.surfaces.size());
    spread(scenarios_.size(), [this](size_t i) { prepare(i); });
    if (!options_.trace.empty() && options_.trace != "-") trace_file_.open(options_.trace);
    spread(scenarios_.size() * options_.searchers.size(),
           [this](size_t i) { play(i / options_.searchers.size(), i % options_.searchers.size()); });
    if (trace_file_.is_open() && !trace_file_.flush()) throw Error(fmt::format("cannot write {}", options_.trace));
    return std::move(results_);
  }

 private:
  // Runs work(0) to work(count - 1) on `jobs` threads. Throws the first failure when all threads have ended.
  void spread(size_t count, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto loop = [&] {
      try {
        for (size_t i = next++; i < count; i = next++) work(i);
      } catch (...) {
        next = count;
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.jobs; ++i) threads.emplace_back(loop);
    loop();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
  }

  void prepare(size_t index) {
    const Surface& surface = options_.surfaces[index];
    ContestScenario& scenario = scenarios_[index];
    scenario.surface = &surface;
    scenario.space = surface.space();
    scenario.fingerprint = fingerprint(surface, scenario.space);
    scenario.optimum = optimum_of(surface, scenario.space);
    if (scenario.optimum.throughput <= 0) throw Error(fmt::format("nothing fits in scenario {}", surface.name));
    results_[index] = {surface.name,
                       surface.family,
                       surface.about,
                       surface.reports_peak,
                       scenario.optimum.throughput,
                       scenario.optimum.overrides,
                       {}};
    for (const std::string& name : options_.searchers) results_[index].entries.push_back({name, {}});
  }

  // The optimum is the same for both halves of a surface.
  Optimum optimum_of(const Surface& surface, const config::Space& space) const {
    const std::string key = fmt::format("{}, optimum, {} {} up to {}", kRules, surface.name,
                                        fingerprint(silent(surface), space), surface.max_micro_batch);
    const Json kept = cache_.find(key);
    if (kept.is_object()) return {kept.at("throughput").get<double>(), kept.at("overrides")};
    const Optimum optimum = find_optimum(surface, space);
    cache_.put(key, {{"throughput", optimum.throughput}, {"overrides", optimum.overrides}});
    return optimum;
  }

  void play(size_t index, size_t searcher) {
    const ContestScenario& scenario = scenarios_[index];
    std::vector<SeedScore> seeds;
    std::unique_ptr<OptunaProcess> optuna;  // started for the first seed that is not cached
    for (int i = 0; i < options_.seeds; ++i) {
      const uint64_t seed = static_cast<uint64_t>(options_.first_seed + i);
      const std::string key = key_of(scenario, searcher, seed);
      const Json kept = cache_.find(key);
      if (kept.is_object()) {
        seeds.push_back(score_from_json(kept));
        continue;
      }
      if (libraries_[searcher] == nullptr && optuna == nullptr) {
        optuna = std::make_unique<OptunaProcess>(options_.python, DSAT_OPTUNA_PEER);
      }
      seeds.push_back(score(scenario, searcher, seed, optuna.get()));
      cache_.put(key, to_json(seeds.back()));
    }
    results_[index].entries[searcher].summary = summarise(seeds, options_.concurrency);
    const std::lock_guard<std::mutex> lock(mutex_);
    fmt::print(stderr, "{} of {}: {} on {}, {}, {} at a time\n", ++done_, scenarios_.size() * options_.searchers.size(),
               options_.searchers[searcher], scenario.surface->name, half_of(*scenario.surface), options_.concurrency);
  }

  void write_trace(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (options_.trace == "-") {
      fmt::print("{}", text);
    } else {
      trace_file_ << text;
    }
  }

  SeedScore score(const ContestScenario& scenario, size_t searcher, uint64_t seed, OptunaProcess* optuna) {
    const std::string& name = options_.searchers[searcher];
    StudySetting setting{scenario.surface, &scenario.space, seed, options_.budgets.back(), options_.concurrency};
    if (libraries_[searcher] != nullptr) {
      setting.profile_trials = profile_trials_of(libraries_[searcher]->factory(DSAT_SEARCHER_FACTORY));
    }
    const ProfileRun profile = run_profile(profiler_.factory(DSAT_PROFILER_FACTORY), setting);
    SeedScore score;
    if (!profile.error.empty()) {
      // A study without a profile hands nothing back, with any budget.
      StudyRun run;
      run.trials = profile.trials;
      run.wall_s = run.profile_s = profile.wall_s;
      run.finish_reason = "the profile failed: " + profile.error;
      for (const int budget : options_.budgets) {
        add_study(score, *scenario.surface, scenario.optimum.throughput, run, budget, setting.concurrency);
      }
      if (!options_.trace.empty()) write_trace(trace_of(scenario, name, seed, run));
      return score;
    }
    if (optuna != nullptr) {
      // Optuna does not know its budget, so a shorter study is the beginning of the longest.
      OptunaStudy study(*optuna, name.substr(7), options_.optuna_oom, setting, profile);
      const StudyRun run = run_ask_tell(study, setting, profile);
      add_study(score, *scenario.surface, scenario.optimum.throughput, run, setting.max_trials, setting.concurrency);
      for (const int budget : options_.budgets) score.handed[budget] = score.so_far.at(static_cast<size_t>(budget - 1));
      return score;
    }
    const dsat_factory& factory = libraries_[searcher]->factory(DSAT_SEARCHER_FACTORY);
    for (const int budget : options_.budgets) {
      setting.max_trials = budget;
      const StudyRun run = run_searcher(factory, options_for(name), setting, profile);
      if (!run.error.empty()) throw Error(fmt::format("{} failed on {}: {}", name, scenario.surface->name, run.error));
      add_study(score, *scenario.surface, scenario.optimum.throughput, run, budget, setting.concurrency);
      if (!options_.trace.empty() && budget == options_.budgets.back()) {
        write_trace(trace_of(scenario, name, seed, run));
      }
    }
    return score;
  }

  Json options_for(const std::string& name) const { return options_.searcher_options.value(name, Json::object()); }

  std::string key_of(const ContestScenario& scenario, size_t searcher, uint64_t seed) const {
    const std::string& name = options_.searchers[searcher];
    const std::string version = libraries_[searcher] == nullptr
                                    ? fmt::format("{} {} {}", script_hash_, optuna_version_, options_.optuna_oom)
                                    : libraries_[searcher]->hash() + options_for(name).dump();
    return fmt::format("{}, {} {}, profiler {}, {} {}, seed {}, budgets {}, {} at a time", kRules, name, version,
                       profiler_.hash(), scenario.surface->name, scenario.fingerprint, seed,
                       fmt::join(options_.budgets, " "), options_.concurrency);
  }

  const ContestOptions& options_;
  Cache cache_;
  Library profiler_;
  std::vector<std::unique_ptr<Library>> libraries_;  // null: Optuna
  std::string script_hash_, optuna_version_;
  std::vector<ContestScenario> scenarios_;
  std::vector<ScenarioResult> results_;
  std::mutex mutex_;
  std::ofstream trace_file_;
  size_t done_ = 0;
};

}  // namespace

std::vector<ScenarioResult> run_contest(const ContestOptions& options) { return Contest(options).run(); }

}  // namespace dsat::bench
